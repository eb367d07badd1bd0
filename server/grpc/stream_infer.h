// ModelStreamInfer: many inference requests in flight on one stream.
//
// Answers carry their request's id and come as they are ready, not in the order of the
// requests. An error is one answer with error_message and the id; the stream stays open. When
// the client has closed its half, the stream ends after the last answer.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "inference/grpc_service.grpc.pb.h"
#include "server/api/api.h"
#include "server/grpc/open_streams.h"

namespace longview::server {

// Owns itself from Start to OnDone. Thread-safe as gRPC's reactors are.
class StreamInfer final : public grpc::ServerBidiReactor<inference::ModelInferRequest,
                                                         inference::ModelStreamInferResponse>,
                          public EndableStream {
 public:
  static StreamInfer* Start(Api& api, OpenStreams& streams, CallInfo info);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  void EndWhenIdle() override;

 private:
  // What has been read but not yet written back; more is read when there is room.
  static constexpr size_t kMaxOpenRequests = 256;

  StreamInfer(Api& api, OpenStreams& streams, CallInfo info);

  void Submit();
  void Answer(uint64_t number, inference::ModelStreamInferResponse response);

  // Starts whatever is due: a read, a write, or the end. REQUIRES: mutex_ held. The library
  // never runs a reaction inside a Start or Finish, so that holding the lock is safe.
  void Step();

  Api& api_;
  OpenStreams& streams_;
  const CallInfo info_;
  inference::ModelInferRequest request_;  // Belongs to the read that is under way.

  std::mutex mutex_;  // Guards all below.
  uint64_t next_number_ = 0;
  std::map<uint64_t, Api::Pending> running_;
  std::deque<inference::ModelStreamInferResponse> answers_;  // The first is being written.
  bool reading_ = false;
  bool writing_ = false;
  bool reads_ended_ = false;
  bool broken_ = false;  // Cancelled, or the client does not take answers any more.
  bool ending_ = false;  // The server stops.
  bool finished_ = false;
};

}  // namespace longview::server
