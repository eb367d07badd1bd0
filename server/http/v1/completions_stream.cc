#include "server/http/v1/completions_stream.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "server/http/error_body.h"

namespace longview::server {
namespace {

constexpr size_t kPart = 64 << 10;  // Bytes of a part of the body, about.

}  // namespace

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
  // None within a line that is written part by part.
  std::string Filler() const override { return stream_->writer_ ? "" : ": still at work\n\n"; }

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
  early_ = status;
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
  if (!early_.ok()) {
    // The line that was begun is closed: a client can still read it.
    if (writer_) writer_->Cut();
    while (writer_) Continue(&part);
    AppendError(early_, &part);
    return part;
  }
  while (part.data.size() < kPart && !part.last) {
    if (writer_) {
      Continue(&part);
    } else if (!Begin(&part)) {
      break;
    }
  }
  return part;
}

bool CompletionsStream::Begin(BodyStream::Part* part) {
  while (events_.empty() && !end_) {
    PieceFlow::Output out = std::exchange(first_, {});
    // Pieces that came together leave together.
    if (out.empty() && part->data.empty()) out = flow_->Take();
    if (out.empty()) return false;
    for (const Echo& echo : out.echoes) {
      for (int i = 0; i < echo.copies; ++i) events_.push_back({{}, echo.prompt, echo.first + i});
    }
    for (models::Piece& piece : out.pieces) {
      const int index = piece.index;
      events_.push_back({std::move(piece), nullptr, index});
    }
    end_ = std::move(out.end);
    if (end_ && !end_->status.ok()) events_.clear();
  }
  if (!events_.empty()) {
    const Event& event = events_.front();
    part->data += head_;
    writer_.emplace(names_, std::vector{event.prompt ? event.prompt.get() : &event.piece},
                    event.index, &offsets_[event.index]);
    return true;
  }
  AppendEnd(*end_, part);
  return true;
}

void CompletionsStream::Continue(BodyStream::Part* part) {
  const size_t most = kPart - std::min(kPart, part->data.size());
  if (writer_->Append(std::max<size_t>(most, 1), &part->data)) return;
  writer_.reset();
  events_.pop_front();
  part->data += include_usage_ ? "],\"usage\":null}\n\n" : "]}\n\n";
}

void CompletionsStream::AppendError(const absl::Status& status, BodyStream::Part* part) {
  part->last = true;
  part->data += "data: ";
  part->data += ErrorResponse(status, ErrorShape::kObject, names_.request_id).body;
  part->data += "\n\n";
}

void CompletionsStream::AppendEnd(const GenerationEnd& end, BodyStream::Part* part) {
  if (!end.status.ok()) return AppendError(end.status, part);
  part->last = true;
  if (include_usage_) {
    part->data += head_;
    part->data += "],\"usage\":";
    AppendUsage(TotalsOf(end.completed).usage, &part->data);
    part->data += "}\n\n";
  }
  part->data += "data: [DONE]\n\n";
}

}  // namespace longview::server
