#include "server/grpc/stream_infer.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "inference/grpc_service.pb.h"
#include "server/api/infer/infer_stream.h"
#include "server/errors.h"
#include "server/scheduler/steady_clock.h"
#include "server/status_map_grpc.h"

namespace longview::server {
namespace {

using google::protobuf::internal::WireFormatLite;
using inference::ModelInferRequest;

// The id and the model's name of the ModelInferRequest in `bytes`, which stay as they are; what is
// not there, or longer than 1 KiB, is empty.
inference::ModelInferRequest NamesOf(grpc::ByteBuffer& bytes) {
  constexpr uint32_t kMostBytes = 1024;
  ModelInferRequest names;
  grpc::ProtoBufferReader reader(&bytes);
  google::protobuf::io::CodedInputStream in(&reader);
  while (const uint32_t tag = in.ReadTag()) {
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    const bool name = field == ModelInferRequest::kIdFieldNumber ||
                      field == ModelInferRequest::kModelNameFieldNumber;
    if (!name || WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (!WireFormatLite::SkipField(&in, tag)) break;
      continue;
    }
    uint32_t size = 0;
    std::string text;
    if (!in.ReadVarint32(&size)) break;
    if (size > kMostBytes) {
      if (!in.Skip(static_cast<int>(size))) break;
      continue;
    }
    if (!in.ReadString(&text, static_cast<int>(size))) break;
    if (!WireFormatLite::VerifyUtf8String(text.data(), static_cast<int>(text.size()),
                                          WireFormatLite::PARSE, "name")) {
      continue;
    }
    if (field == ModelInferRequest::kIdFieldNumber) {
      names.set_id(std::move(text));
    } else {
      names.set_model_name(std::move(text));
    }
  }
  return names;
}

}  // namespace

StreamInfer* StreamInfer::New(Api& api, OpenStreams& streams, const CallTools& tools,
                              grpc::CallbackServerContext& context) {
  auto stream = std::shared_ptr<StreamInfer>(new StreamInfer(api, streams, tools, context),
                                             [](StreamInfer* ended) { delete ended; });
  stream->self_ = stream;
  return stream.get();
}

StreamInfer::StreamInfer(Api& api, OpenStreams& streams, const CallTools& tools,
                         grpc::CallbackServerContext& context)
    : ByteCall(tools, context, "ModelStreamInfer", Access::kKey), api_(api), streams_(streams) {}

void StreamInfer::Begin() {
  streams_.Add(this);
  absl::MutexLock lock(&mutex_);
  Step();
}

void StreamInfer::OnMessage(grpc::ByteBuffer& bytes) {
  ByteBudget::Reservation held = Reserve();
  {
    google::protobuf::Arena arena;
    auto& request = *google::protobuf::Arena::CreateMessage<inference::ModelInferRequest>(&arena);
    const absl::Status read = TryDecode(bytes, request, held);
    // Messages that the protocol itself does not allow end the stream.
    if (absl::IsOutOfRange(read) || absl::IsInternal(read)) return Fail(Refused(read));
    if (read.ok()) {
      Submit(request, std::move(held));
    } else {
      Refused(read);  // For the record.
      std::shared_ptr<InferStream> refusal = RefusedInferStream(NamesOf(bytes), read);
      bytes.Clear();
      held.Reset();
      absl::MutexLock lock(&mutex_);
      running_[next_number_].stream = std::move(refusal);
      ready_.push_back(next_number_++);
    }
  }
  absl::MutexLock lock(&mutex_);
  reading_ = false;
  Step();
}

void StreamInfer::OnNoMessage() {
  absl::MutexLock lock(&mutex_);
  reading_ = false;
  reads_ended_ = true;
  Step();
}

void StreamInfer::Fail(const grpc::Status& status) {
  absl::MutexLock lock(&mutex_);
  reading_ = false;
  reads_ended_ = true;
  failure_ = status;
  Step();
}

void StreamInfer::Submit(const inference::ModelInferRequest& request,
                         ByteBudget::Reservation held) {
  uint64_t number = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (finished_ || cut_) return;
    number = next_number_++;
    running_bytes_ += held.bytes();
    running_[number].held = std::move(held);
  }
  CallInfo own = info();
  own.arrival = SteadyNow();
  std::shared_ptr<InferStream> stream =
      api_.StreamInfer(own, request, [weak = weak_from_this(), number] {
        if (const auto alive = weak.lock()) alive->Ready(number);
      });
  bool cancel = false;
  {
    absl::MutexLock lock(&mutex_);
    cancel = broken_ || cut_;
    if (!cut_) running_[number].stream = stream;
    ready_.push_back(number);
  }
  // OnCancel may have come before the stream was there.
  if (cancel) stream->Cancel();
}

void StreamInfer::Ready(uint64_t number) {
  OrEnd([this, number] {
    absl::MutexLock lock(&mutex_);
    ready_.push_back(number);
    Step();
  });
}

bool StreamInfer::TakeAnswer() {
  while (!ready_.empty()) {
    const uint64_t number = ready_.front();
    ready_.pop_front();
    const auto found = running_.find(number);
    // Submit asks again once the stream is there.
    if (found == running_.end() || found->second.stream == nullptr) continue;
    auto [message, end] = found->second.stream->Take();
    if (end) {
      running_bytes_ -= found->second.held.bytes();
      running_.erase(found);
    }
    if (!message) continue;
    if (!end) ready_.push_back(number);
    if (broken_) continue;
    answer_ = *std::move(message);
    return true;
  }
  return false;
}

void StreamInfer::OnWriteDone(bool ok) {
  open().Taken();
  OrEnd([this, ok] {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    broken_ = broken_ || !ok;
    Step();
  });
}

void StreamInfer::OnCancel() {
  std::vector<std::shared_ptr<InferStream>> running;
  {
    absl::MutexLock lock(&mutex_);
    broken_ = true;
    for (const auto& [number, request] : running_) running.push_back(request.stream);
    Step();
  }
  for (const auto& stream : running) {
    if (stream != nullptr) stream->Cancel();
  }
}

void StreamInfer::EndNow(const grpc::Status& status) {
  std::map<uint64_t, Request> running;
  {
    absl::MutexLock lock(&mutex_);
    if (finished_ || cut_) return;
    cut_ = reads_ended_ = true;
    failure_ = status;
    running.swap(running_);
    Step();
  }
  for (const auto& [number, request] : running) {
    if (request.stream != nullptr) request.stream->Cancel();
  }
}

void StreamInfer::EndWhenIdle() {
  absl::MutexLock lock(&mutex_);
  ending_ = true;
  Step();
}

void StreamInfer::Delete() {
  streams_.Remove(this);
  // The thread that called Finish may still hold the lock.
  { absl::MutexLock lock(&mutex_); }
  self_.reset();
}

void StreamInfer::Step() {
  if (finished_ || refused()) return;
  if (!writing_ && TakeAnswer()) {
    StartWrite(&Encode(answer_));
    writing_ = true;
  }
  const bool over = reads_ended_ || broken_ || ending_;
  if (!over && !reading_ && running_.size() < kMaxOpenRequests && running_bytes_ <= kMaxOpenBytes) {
    reading_ = true;
    Read(Pace::kAnyTime);
  }
  if (!over || writing_ || !running_.empty()) return;
  finished_ = true;
  if (broken_) {
    Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the client left"));
  } else if (!failure_.ok()) {
    Finish(failure_);
  } else if (reads_ended_) {
    Finish(grpc::Status::OK);
  } else {
    Finish(ToGrpcStatus(ShuttingDownError()));
  }
}

}  // namespace longview::server
