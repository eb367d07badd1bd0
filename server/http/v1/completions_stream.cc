#include "server/http/v1/completions_stream.h"

#include <utility>

#include "server/http/error_body.h"

namespace longview::server {

// Destroyed with its end unread: the client has left.
class CompletionsStream::Body final : public BodyStream {
 public:
  explicit Body(std::shared_ptr<CompletionsStream> stream) : stream_(std::move(stream)) {}
  ~Body() override {
    if (!ended_) stream_->Cancel();
  }

  void Listen(absl::AnyInvocable<void()> wake) override { stream_->Listen(std::move(wake)); }
  Part Take() override {
    Part part = stream_->Take();
    ended_ = part.last;
    return part;
  }
  void End(const absl::Status& status) override { stream_->End(status); }
  std::string Filler() const override { return ": still at work\n\n"; }

 private:
  const std::shared_ptr<CompletionsStream> stream_;
  bool ended_ = false;
};

std::shared_ptr<CompletionsStream> CompletionsStream::Make(ExchangePtr exchange,
                                                           CompletionNames names,
                                                           bool include_usage) {
  std::shared_ptr<CompletionsStream> stream(
      new CompletionsStream(std::move(exchange), std::move(names), include_usage));
  stream->flow_ = std::make_shared<PieceFlow>([weak = std::weak_ptr(stream)] {
    if (const auto alive = weak.lock()) alive->Ready();
  });
  return stream;
}

CompletionsStream::CompletionsStream(ExchangePtr exchange, CompletionNames names,
                                     bool include_usage)
    : names_(std::move(names)), include_usage_(include_usage), exchange_(std::move(exchange)) {
  head_ = "data: ";
  AppendHead(names_, &head_);
}

void CompletionsStream::SetPending(Api::Pending pending) {
  bool cancelled = false;
  {
    absl::MutexLock lock(&mutex_);
    pending_ = pending;
    cancelled = cancelled_;
  }
  if (cancelled) Api::Cancel(pending);
}

void CompletionsStream::Cancel() {
  Api::Pending pending;
  {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    pending = pending_;
  }
  Api::Cancel(pending);
}

void CompletionsStream::End(const absl::Status& status) {
  // First: what the engine says of the cancelled call then comes too late.
  flow_->End({.status = status, .completed = {}});
  Cancel();
}

void CompletionsStream::Ready() {
  ExchangePtr exchange;
  absl::Status failed;
  {
    absl::MutexLock lock(&mutex_);
    if (exchange_ == nullptr) {
      if (wake_ != nullptr) wake_();
      return;
    }
    first_ = flow_->Take();
    if (first_.empty()) return;
    exchange = std::move(exchange_);
    if (first_.end) failed = first_.end->status;
  }
  // Nothing has left yet: an error is an answer of its own.
  if (!failed.ok()) return exchange->Fail(failed);
  HttpResponse response;
  response.content_type = "text/event-stream; charset=utf-8";
  response.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  response.stream = std::make_unique<Body>(shared_from_this());
  exchange->Respond(std::move(response));
}

void CompletionsStream::Listen(absl::AnyInvocable<void()> wake) {
  absl::MutexLock lock(&mutex_);
  wake_ = std::move(wake);
}

BodyStream::Part CompletionsStream::Take() {
  BodyStream::Part part;
  while (part.data.empty() && !part.last) {
    PieceFlow::Output out = std::exchange(first_, {});
    if (out.empty()) out = flow_->Take();
    if (out.empty()) break;
    AppendEvents(std::move(out), &part);
  }
  return part;
}

void CompletionsStream::AppendEvents(PieceFlow::Output out, BodyStream::Part* part) {
  std::string& data = part->data;
  for (const models::Piece& piece : out.pieces) {
    data += head_;
    AppendChoice(names_, piece, &offsets_[piece.index], &data);
    data += include_usage_ ? "],\"usage\":null}\n\n" : "]}\n\n";
  }
  if (!out.end) return;
  part->last = true;
  if (!out.end->status.ok()) {
    data += "data: ";
    data += ErrorResponse(out.end->status, ErrorShape::kObject, names_.request_id).body;
    data += "\n\n";
    return;
  }
  if (include_usage_) {
    data += head_;
    data += "],\"usage\":";
    AppendUsage(TotalsOf(out.end->completed).usage, &data);
    data += "}\n\n";
  }
  data += "data: [DONE]\n\n";
}

}  // namespace longview::server
