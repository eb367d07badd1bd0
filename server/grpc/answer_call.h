// A server-streaming call: one message at a time, as fast as the client takes them.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <mutex>
#include <utility>

#include "server/api/answer_stream.h"
#include "server/grpc/call_gate.h"
#include "server/status_map_grpc.h"

namespace longview::server {

// Nothing is asked of the stream while a message is being written; what it makes meanwhile waits
// there, joined. Owns itself from Run to OnDone; the stream's callbacks may come later still.
template <typename Message>
class AnswerCall final : public grpc::ServerWriteReactor<Message> {
 public:
  using Stream = AnswerStream<Message>;

  // `start(info, on_ready)` begins an admitted call.
  template <typename Start>
  static grpc::ServerWriteReactor<Message>* Run(const CallGate& gate,
                                                grpc::CallbackServerContext& context,
                                                std::string_view method, Start start) {
    const absl::StatusOr<CallInfo> info = gate.Admit(context, method);
    if (!info.ok()) {
      return new RefusedCall<grpc::ServerWriteReactor<Message>>(ToGrpcStatus(info.status()));
    }
    auto call = std::shared_ptr<AnswerCall>(new AnswerCall());
    call->self_ = call;
    std::unique_ptr<Stream> stream = start(*info, [weak = std::weak_ptr(call)] {
      if (const auto alive = weak.lock()) alive->Step();
    });
    {
      std::lock_guard lock(call->mutex_);
      call->stream_ = std::move(stream);
    }
    call->Step();
    return call.get();
  }

  void OnWriteDone(bool ok) override {
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
    {
      std::lock_guard lock(mutex_);
      broken_ = true;
    }
    stream_->Cancel();
  }
  void OnDone() override { self_.reset(); }

 private:
  AnswerCall() = default;

  // Writes what is due. The library never runs a reaction inside a Start or Finish, so that
  // holding the lock is safe.
  void Step() {
    std::lock_guard lock(mutex_);
    while (stream_ != nullptr && !writing_ && !finished_) {
      auto [message, end] = stream_->Take();
      if (!message && !end) return;
      finished_ = end.has_value();
      if (!message || broken_) {
        if (finished_) this->Finish(ToGrpcStatus(*end));
        continue;
      }
      message_ = *std::move(message);
      writing_ = true;
      if (finished_) {
        this->StartWriteAndFinish(&message_, grpc::WriteOptions(), ToGrpcStatus(*end));
      } else {
        this->StartWrite(&message_);
      }
    }
  }

  std::shared_ptr<AnswerCall> self_;
  std::unique_ptr<Stream> stream_;  // Set under mutex_ before any reaction.
  Message message_;                 // Belongs to the write that is under way.
  std::mutex mutex_;                // Guards all below.
  bool writing_ = false;
  bool broken_ = false;  // The client takes no more.
  bool finished_ = false;
};

}  // namespace longview::server
