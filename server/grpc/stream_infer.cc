#include "server/grpc/stream_infer.h"

#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "server/status_map_grpc.h"

namespace longview::server {

StreamInfer::Reactor* StreamInfer::Start(Api& api, const CallGate& gate, OpenStreams& streams,
                                         grpc::CallbackServerContext& context) {
  absl::StatusOr<CallInfo> info = gate.Admit(context, "ModelStreamInfer");
  if (!info.ok()) return new RefusedCall<Reactor>(ToGrpcStatus(info.status()));
  auto stream = std::shared_ptr<StreamInfer>(new StreamInfer(api, streams, *std::move(info)));
  stream->self_ = stream;
  streams.Add(stream.get());
  std::lock_guard lock(stream->mutex_);
  stream->Step();
  return stream.get();
}

StreamInfer::StreamInfer(Api& api, OpenStreams& streams, CallInfo info)
    : api_(api), streams_(streams), info_(std::move(info)) {}

void StreamInfer::OnReadDone(bool ok) {
  if (ok) Submit();
  std::lock_guard lock(mutex_);
  reading_ = false;
  reads_ended_ = reads_ended_ || !ok;
  Step();
}

void StreamInfer::Submit() {
  uint64_t number = 0;
  {
    std::lock_guard lock(mutex_);
    if (finished_) return;
    number = next_number_++;
    running_.emplace(number, nullptr);
  }
  CallInfo info = info_;
  info.arrival = absl::Now();
  std::shared_ptr<InferStream> stream =
      api_.StreamInfer(info, request_, [weak = weak_from_this(), number] {
        if (const auto alive = weak.lock()) alive->Ready(number);
      });
  bool cancel = false;
  {
    std::lock_guard lock(mutex_);
    cancel = broken_;
    running_[number] = stream;
    ready_.push_back(number);
  }
  // OnCancel may have come before the stream was there.
  if (cancel) stream->Cancel();
}

void StreamInfer::Ready(uint64_t number) {
  std::lock_guard lock(mutex_);
  ready_.push_back(number);
  Step();
}

bool StreamInfer::TakeAnswer() {
  while (!ready_.empty()) {
    const uint64_t number = ready_.front();
    ready_.pop_front();
    const auto found = running_.find(number);
    // Submit asks again once the stream is there.
    if (found == running_.end() || found->second == nullptr) continue;
    auto [message, end] = found->second->Take();
    if (end) running_.erase(found);
    if (!message) continue;
    if (!end) ready_.push_back(number);
    if (broken_) continue;
    answer_ = *std::move(message);
    return true;
  }
  return false;
}

void StreamInfer::OnWriteDone(bool ok) {
  std::lock_guard lock(mutex_);
  writing_ = false;
  broken_ = broken_ || !ok;
  Step();
}

void StreamInfer::OnCancel() {
  std::vector<std::shared_ptr<InferStream>> running;
  {
    std::lock_guard lock(mutex_);
    broken_ = true;
    for (const auto& [number, stream] : running_) running.push_back(stream);
    Step();
  }
  for (const auto& stream : running) {
    if (stream != nullptr) stream->Cancel();
  }
}

void StreamInfer::EndWhenIdle() {
  std::lock_guard lock(mutex_);
  ending_ = true;
  Step();
}

void StreamInfer::OnDone() {
  streams_.Remove(this);
  // The thread that called Finish may still hold the lock.
  { std::lock_guard lock(mutex_); }
  self_.reset();
}

void StreamInfer::Step() {
  if (finished_) return;
  if (!writing_ && TakeAnswer()) {
    writing_ = true;
    StartWrite(&answer_);
  }
  const bool over = reads_ended_ || broken_ || ending_;
  if (!over && !reading_ && running_.size() < kMaxOpenRequests) {
    reading_ = true;
    StartRead(&request_);
  }
  if (!over || writing_ || !running_.empty()) return;
  finished_ = true;
  if (broken_) {
    Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the client left"));
  } else if (reads_ended_) {
    Finish(grpc::Status::OK);
  } else {
    Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is shutting down"));
  }
}

}  // namespace longview::server
