// A server-streaming call: one message at a time, as fast as the client takes them.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

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
    bool gone = false;
    {
      std::lock_guard lock(mutex_);
      writing_ = false;
      gone = !ok && !std::exchange(broken_, true);
    }
    if (gone) stream_->Cancel();
    Step();
  }

  void OnCancel() override {
    Stream* stream = nullptr;
    {
      std::lock_guard lock(mutex_);
      broken_ = true;
      stream = stream_.get();
    }
    if (stream != nullptr) stream->Cancel();
  }

  void EndNow(const grpc::Status& status) override {
    {
      std::lock_guard lock(mutex_);
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
    bool cancel = false;
    {
      std::lock_guard lock(mutex_);
      cancel = broken_;
      stream_ = std::move(stream);
    }
    if (cancel) stream_->Cancel();
    Step();
  }

  void Step() {
    this->OrEnd([this] {
      std::lock_guard lock(mutex_);
      WriteDue();
    });
  }

  // Writes what is due. REQUIRES: mutex_ held. The library never runs a reaction inside a Start or
  // Finish, so that this is safe.
  void WriteDue() {
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
  std::unique_ptr<Stream> stream_;    // Set once, under mutex_.
  std::mutex mutex_;                  // Guards all below.
  bool writing_ = false;
  bool broken_ = false;  // The client takes no more.
  bool finished_ = false;
  std::optional<grpc::Status> early_;  // Ends the call before its stream does.
};

}  // namespace longview::server
