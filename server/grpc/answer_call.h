// A server-streaming call: one message at a time, as fast as the client takes them.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/api/calls/answer_stream.h"
#include "server/grpc/byte_call.h"
#include "server/status_map_grpc.h"

namespace longview::server {

// Nothing is asked of the stream while a message is being written; what it makes meanwhile waits
// there, joined. `start(info, request, on_ready)` begins the stream, whose callbacks may come later
// than the end of the call.
template <typename Request, typename Message, typename Start>
class AnswerCall final : public ByteCall {
 public:
  using Stream = AnswerStream<Message>;

  static AnswerCall* New(const CallTools& tools, grpc::CallbackServerContext& context,
                         std::string_view method, const Start& start) {
    auto call =
        std::shared_ptr<AnswerCall>(new AnswerCall(tools, context, method, start), Deleter());
    call->self_ = call;
    return call.get();
  }

  void OnWriteDone(bool ok) override {
    open().Taken();
    Stream* gone = nullptr;
    {
      absl::MutexLock lock(&mutex_);
      writing_ = false;
      if (!ok && !std::exchange(broken_, true)) gone = stream_.get();
    }
    if (gone != nullptr) gone->Cancel();
    Step();
  }

  void OnCancel() override {
    Stream* stream = nullptr;
    {
      absl::MutexLock lock(&mutex_);
      broken_ = true;
      stream = stream_.get();
    }
    if (stream != nullptr) stream->Cancel();
  }

  void EndNow(const grpc::Status& status) override {
    {
      absl::MutexLock lock(&mutex_);
      if (!finished_ && !early_) early_ = status;
    }
    Step();
    OnCancel();
  }

 private:
  struct Deleter {
    void operator()(AnswerCall* call) const { delete call; }
  };

  AnswerCall(const CallTools& tools, grpc::CallbackServerContext& context, std::string_view method,
             const Start& start)
      : ByteCall(tools, context, method, Access::kKey), start_(start) {}

  void Begin() override { Read(Pace::kInTime); }
  void OnNoMessage() override { EndNow({grpc::StatusCode::INTERNAL, "the call has no message"}); }
  void Delete() override { self_.reset(); }

  void OnMessage(grpc::ByteBuffer& bytes) override {
    Request request;
    if (const grpc::Status read = Decode(bytes, request, held()); !read.ok()) return EndNow(read);
    std::unique_ptr<Stream> stream = start_(info(), request, [weak = std::weak_ptr(self_)] {
      if (const auto alive = weak.lock()) alive->Step();
    });
    Stream* cancelled = nullptr;
    {
      absl::MutexLock lock(&mutex_);
      stream_ = std::move(stream);
      if (broken_) cancelled = stream_.get();
    }
    if (cancelled != nullptr) cancelled->Cancel();
    Step();
  }

  void Step() {
    this->OrEnd([this] {
      absl::MutexLock lock(&mutex_);
      WriteDue();
    });
  }

  // Writes what is due. The library never runs a reaction inside a Start or Finish, so that holding
  // the lock is safe.
  void WriteDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    while (!writing_ && !finished_ && (early_ || stream_ != nullptr)) {
      if (early_) {
        finished_ = true;
        return this->Finish(*early_);
      }
      auto [message, end] = stream_->Take();
      if (!message && !end) return;
      if (!message || broken_) {
        finished_ = end.has_value();
        if (finished_) this->Finish(ToGrpcStatus(*end));
        continue;
      }
      grpc::ByteBuffer& bytes = Encode(*message);
      finished_ = end.has_value();
      writing_ = true;
      if (finished_) {
        this->WriteAndFinish(bytes, ToGrpcStatus(*end));
      } else {
        this->StartWrite(&bytes);
      }
    }
  }

  const Start& start_;
  std::shared_ptr<AnswerCall> self_;  // Until the end; callbacks may hold it longer.
  absl::Mutex mutex_;
  std::unique_ptr<Stream> stream_ ABSL_GUARDED_BY(mutex_);  // Set once; used without the lock, too.
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;  // The client takes no more.
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  // Ends the call before its stream does.
  std::optional<grpc::Status> early_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace longview::server
