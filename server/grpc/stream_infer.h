// ModelStreamInfer: many inference requests in flight on one stream.
//
// Answers carry their request's id and come as they are ready, not in the order of the
// requests; requests with several answers take turns. Nothing is asked of them while an answer is
// being written: what a generator makes meanwhile waits there, joined. An error is one answer with
// error_message and the id; the stream stays open. When the client has closed its half, the stream
// ends after the last answer.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "inference/grpc_service.grpc.pb.h"
#include "server/api/api.h"
#include "server/grpc/call_gate.h"
#include "server/grpc/open_streams.h"

namespace longview::server {

// Owns itself from Start to OnDone. Thread-safe as gRPC's reactors are.
class StreamInfer final : public grpc::ServerBidiReactor<inference::ModelInferRequest,
                                                         inference::ModelStreamInferResponse>,
                          public EndableStream,
                          public std::enable_shared_from_this<StreamInfer> {
 public:
  using Reactor =
      grpc::ServerBidiReactor<inference::ModelInferRequest, inference::ModelStreamInferResponse>;

  static Reactor* Start(Api& api, const CallGate& gate, OpenStreams& streams,
                        grpc::CallbackServerContext& context);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  void EndWhenIdle() override;

 private:
  // Read but not yet answered; more are read when there is room.
  static constexpr size_t kMaxOpenRequests = 256;

  StreamInfer(Api& api, OpenStreams& streams, CallInfo info);

  void Submit();
  void Ready(uint64_t number);
  // The next answer of any request, in answer_; whether there is one. REQUIRES: mutex_ held.
  bool TakeAnswer();

  // Starts whatever is due: a read, a write, or the end. REQUIRES: mutex_ held. The library
  // never runs a reaction inside a Start or Finish, so that holding the lock is safe.
  void Step();

  Api& api_;
  OpenStreams& streams_;
  const CallInfo info_;
  inference::ModelInferRequest request_;  // Belongs to the read that is under way.

  std::mutex mutex_;  // Guards all below.
  uint64_t next_number_ = 0;
  std::map<uint64_t, std::shared_ptr<InferStream>> running_;  // Null while it is submitted.
  std::deque<uint64_t> ready_;                                // Requests that may have an answer.
  inference::ModelStreamInferResponse answer_;  // Belongs to the write that is under way.
  bool reading_ = false;
  bool writing_ = false;
  bool reads_ended_ = false;
  bool broken_ = false;  // Cancelled, or the client does not take answers any more.
  bool ending_ = false;  // The server stops.
  bool finished_ = false;

  std::shared_ptr<StreamInfer> self_;  // Until OnDone; callbacks of requests may come later.
};

}  // namespace longview::server
