#include "server/grpc/stream_infer.h"

#include <utility>
#include <vector>

#include "absl/time/clock.h"

namespace longview::server {
namespace {

constexpr char kFinal[] = "triton_final_response";

inference::ModelStreamInferResponse ToAnswer(const std::string& id, const std::string& model,
                                             absl::StatusOr<inference::ModelInferResponse> result) {
  inference::ModelStreamInferResponse out;
  inference::ModelInferResponse& response = *out.mutable_infer_response();
  if (result.ok()) {
    response = *std::move(result);
  } else {
    out.set_error_message(std::string(result.status().message()));
    response.set_id(id);
    response.set_model_name(model);
  }
  // Every model here answers once, so each answer is its request's last and the empty one
  // that triton_enable_empty_final_response asks for is never due.
  (*response.mutable_parameters())[kFinal].set_bool_param(true);
  return out;
}

}  // namespace

StreamInfer* StreamInfer::Start(Api& api, OpenStreams& streams, CallInfo info) {
  auto* stream = new StreamInfer(api, streams, std::move(info));
  streams.Add(stream);
  std::lock_guard lock(stream->mutex_);
  stream->Step();
  return stream;
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
  Api::Pending pending =
      api_.Infer(info, request_,
                 [this, number, id = request_.id(), model = request_.model_name()](
                     absl::StatusOr<inference::ModelInferResponse> result) {
                   Answer(number, ToAnswer(id, model, std::move(result)));
                 });
  bool cancel = false;
  {
    std::lock_guard lock(mutex_);
    cancel = broken_;
    const auto found = running_.find(number);
    if (found != running_.end()) found->second = pending;
  }
  // OnCancel may have come before the handle was there.
  if (cancel) Api::Cancel(pending);
}

void StreamInfer::Answer(uint64_t number, inference::ModelStreamInferResponse response) {
  std::lock_guard lock(mutex_);
  running_.erase(number);
  if (!broken_) answers_.push_back(std::move(response));
  Step();
}

void StreamInfer::OnWriteDone(bool ok) {
  std::lock_guard lock(mutex_);
  writing_ = false;
  broken_ = broken_ || !ok;
  answers_.pop_front();
  Step();
}

void StreamInfer::OnCancel() {
  std::vector<Api::Pending> running;
  {
    std::lock_guard lock(mutex_);
    broken_ = true;
    for (const auto& [number, pending] : running_) running.push_back(pending);
    Step();
  }
  for (const Api::Pending& pending : running) Api::Cancel(pending);
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
  delete this;
}

void StreamInfer::Step() {
  if (finished_) return;
  if (!broken_ && !answers_.empty() && !writing_) {
    writing_ = true;
    StartWrite(&answers_.front());
  }
  const bool over = reads_ended_ || broken_ || ending_;
  if (!over && !reading_ && running_.size() + answers_.size() < kMaxOpenRequests) {
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
