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

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "inference/grpc_service.pb.h"
#include "server/api/api.h"
#include "server/grpc/byte_call.h"
#include "server/grpc/open_streams.h"

namespace longview::server {

// Thread-safe as gRPC's reactors are. Callbacks of its requests may come later than its end.
class StreamInfer final : public ByteCall,
                          public EndableStream,
                          public std::enable_shared_from_this<StreamInfer> {
 public:
  static StreamInfer* New(Api& api, OpenStreams& streams, const CallTools& tools,
                          grpc::CallbackServerContext& context);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void EndWhenIdle() override;
  void EndNow(const grpc::Status& status) override;

 private:
  // Most requests that are read and not answered; at the limit, reading pauses (backpressure).
  static constexpr size_t kMaxOpenRequests = 256;
  // Most bytes of these requests; more are read when there is room for one of the largest.
  static constexpr uint64_t kMaxOpenBytes = uint64_t{16} << 20;

  // A request that was read and has not ended.
  struct Request {
    std::shared_ptr<InferStream> stream;  // Null while it is submitted.
    ByteBudget::Reservation held;
  };

  StreamInfer(Api& api, OpenStreams& streams, const CallTools& tools,
              grpc::CallbackServerContext& context);

  void Begin() override;
  void OnMessage(grpc::ByteBuffer& bytes) override;
  void OnNoMessage() override;
  void Delete() override;

  void Submit(const inference::ModelInferRequest& request, ByteBudget::Reservation held);
  // Ends the stream with an error of its own.
  void Fail(const grpc::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  void Ready(uint64_t number);
  // The next answer of any request, in answer_; whether there is one.
  bool TakeAnswer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Starts whatever is due: a read, a write, or the end. The library never runs a reaction inside a
  // Start or Finish, so that holding the lock is safe.
  void Step() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Api& api_;
  OpenStreams& streams_;

  absl::Mutex mutex_;
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Request> running_ ABSL_GUARDED_BY(mutex_);
  uint64_t running_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // Bytes held by running_.
  std::deque<uint64_t> ready_ ABSL_GUARDED_BY(mutex_);  // Requests that may have an answer.
  inference::ModelStreamInferResponse answer_ ABSL_GUARDED_BY(mutex_);
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool reads_ended_ ABSL_GUARDED_BY(mutex_) = false;
  // Cancelled, or the client does not take answers any more.
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;  // The server stops.
  // Requests that are not answered yet will not be.
  bool cut_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  // An error of the client's messages, or EndNow's; ends the stream.
  grpc::Status failure_ ABSL_GUARDED_BY(mutex_);

  std::shared_ptr<StreamInfer> self_;  // Until the end.
};

}  // namespace longview::server
