// A unary call whose answer comes later, from another thread, or at once.
#pragma once

#include <google/protobuf/arena.h>

#include <type_traits>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "inference/grpc_service.pb.h"
#include "server/api/api.h"
#include "server/exception_guard.h"
#include "server/grpc/byte_call.h"
#include "server/status_map_grpc.h"

namespace longview::server {

// `start(info, request, reply)` begins the work and returns its Api::Pending; the request is gone
// when it has returned.
template <typename Request, typename Response, typename Start>
class UnaryCall final : public ByteCall {
 public:
  UnaryCall(const CallTools& tools, grpc::CallbackServerContext& context, std::string_view method,
            Access access, const Start& start)
      : ByteCall(tools, context, method, access), start_(start) {}

  void OnCancel() override {
    Api::Pending pending;
    {
      absl::MutexLock lock(&mutex_);
      cancelled_ = true;
      pending = pending_;
    }
    if (pending != nullptr) Api::Cancel(pending);
  }

  void EndNow(const grpc::Status& status) override {
    if (!MayEnd()) return;
    Finish(status);
    OnCancel();
  }

 private:
  void Begin() override { Read(Pace::kInTime); }

  void OnNoMessage() override {
    if (MayEnd()) Finish({grpc::StatusCode::INTERNAL, "the call has no message"});
  }

  void OnMessage(grpc::ByteBuffer& bytes) override {
    // A parsed inference request is many small objects, and an arena frees them together.
    if constexpr (std::is_same_v<Request, inference::ModelInferRequest>) {
      google::protobuf::Arena arena;
      Submit(bytes, *google::protobuf::Arena::CreateMessage<Request>(&arena));
    } else {
      Request request;
      Submit(bytes, request);
    }
  }

  void Submit(grpc::ByteBuffer& bytes, Request& request) {
    if (const grpc::Status read = Decode(bytes, request, held()); !read.ok()) {
      if (MayEnd()) Finish(read);
      return;
    }
    // The reply may come before this function is over, or long after the end of the call.
    Api::Pending pending = start_(
        info(), request, [this, keeper = Keeper(this)](absl::StatusOr<Response> result) mutable {
          const Keeper last = std::move(keeper);
          Answer(std::move(result));
        });
    bool cancel = false;
    if (pending != nullptr) {
      absl::MutexLock lock(&mutex_);
      cancel = cancelled_;
      if (!answered_) pending_ = pending;
    }
    if (cancel) Api::Cancel(pending);
  }

  void Answer(absl::StatusOr<Response> result) {
    {
      absl::MutexLock lock(&mutex_);
      answered_ = true;
      pending_ = nullptr;
    }
    if (!MayEnd()) return;
    if (!result.ok()) return Finish(ToGrpcStatus(result.status()));
    grpc::ByteBuffer* bytes = nullptr;
    const absl::Status encoded = Guarded([&] {
      bytes = &Encode(*result);
      return absl::OkStatus();
    });
    if (!encoded.ok()) return Finish(ToGrpcStatus(encoded));
    WriteAndFinish(*bytes, grpc::Status::OK);
  }

  // Whether the call has not been ended yet; whoever asks ends it.
  bool MayEnd() {
    absl::MutexLock lock(&mutex_);
    return !std::exchange(ended_, true);
  }

  const Start& start_;
  absl::Mutex mutex_;
  Api::Pending pending_ ABSL_GUARDED_BY(mutex_);
  bool answered_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace longview::server
