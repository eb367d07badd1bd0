#include "server/tracing/span_exporter.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "server/scheduler/steady_clock.h"
#include "server/scheduler/thread_loop.h"
#include "server/tracing/otlp_messages.h"

namespace longview::server {
namespace {

constexpr size_t kMostCalls = 256;                          // Calls per message: some 300 KB.
constexpr absl::Duration kCollecting = absl::Seconds(1);    // Spans gather so long for one message.
constexpr absl::Duration kPatience = absl::Seconds(5);      // Deadline of an export.
constexpr absl::Duration kLastPatience = absl::Seconds(1);  // Time left for exports at the end.
constexpr absl::Duration kFirstRest = absl::Seconds(1);     // First pause after a failed export.
constexpr absl::Duration kLongestRest = absl::Seconds(30);  // Longest pause; each doubles the last.

std::shared_ptr<grpc::Channel> Connect(std::string_view endpoint) {
  constexpr std::string_view kPlain = "http://";
  constexpr std::string_view kTls = "https://";
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (endpoint.starts_with(kTls)) {
    credentials = grpc::SslCredentials({});
    endpoint.remove_prefix(kTls.size());
  } else if (endpoint.starts_with(kPlain)) {
    endpoint.remove_prefix(kPlain.size());
  }
  return grpc::CreateChannel(std::string(endpoint), credentials);
}

// Whether OTLP allows sending the spans again after this code.
bool IsPassing(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::OUT_OF_RANGE:
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DATA_LOSS:
      return true;
    default:
      return false;
  }
}

}  // namespace

SpanExporter::SpanExporter(TracerOptions options)
    : options_(std::move(options)),
      collector_(Collector::NewStub(Connect(options_.endpoint))),
      thread_(StartThread([this] { Loop(); })) {}

SpanExporter::~SpanExporter() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
    last_deadline_ = SteadyNow() + kLastPatience;
    if (sending_ != nullptr) sending_->TryCancel();
  }
  changed_.SignalAll();
  thread_.join();
}

void SpanExporter::Add(CallTrace trace) {
  bool wake;
  {
    absl::MutexLock lock(&mutex_);
    if (ending_ || waiting_.size() >= options_.max_waiting) {
      dropped_ += static_cast<uint64_t>(NumSpans(trace));
      return;
    }
    waiting_.push_back(std::move(trace));
    wake = waiting_.size() == 1 || waiting_.size() == kMostCalls;
  }
  if (wake) changed_.Signal();
}

void SpanExporter::Rest(absl::Duration time) {
  absl::MutexLock lock(&mutex_);
  changed_.AwaitFor(&mutex_, absl::Condition(&ending_), time);
}

std::vector<CallTrace> SpanExporter::Next() {
  const auto full = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ending_ || waiting_.size() >= kMostCalls;
  };
  absl::MutexLock lock(&mutex_);
  while (!ending_ && waiting_.empty()) changed_.Wait(&mutex_);
  changed_.AwaitFor(&mutex_, absl::Condition(&full), kCollecting);
  std::vector<CallTrace> next;
  while (!waiting_.empty() && next.size() < kMostCalls) {
    next.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return next;
}

void SpanExporter::Loop() {
  for (std::vector<CallTrace> next = Next(); !next.empty(); next = Next()) Send(std::move(next));
}

void SpanExporter::Send(std::vector<CallTrace> traces) {
  uint64_t spans = 0;
  for (const CallTrace& trace : traces) spans += static_cast<uint64_t>(NumSpans(trace));
  const auto request = ToOtlp(traces, options_.version);
  traces.clear();
  absl::Duration rest = kFirstRest;
  while (true) {
    opentelemetry::proto::collector::trace::v1::ExportTraceServiceResponse response;
    const auto context = std::make_shared<grpc::ClientContext>();
    bool last;
    {
      absl::MutexLock lock(&mutex_);
      last = ending_;
      const absl::Duration left = last ? last_deadline_ - SteadyNow() : kPatience;
      context->set_deadline(absl::ToChronoTime(absl::Now() + left));
      sending_ = last ? nullptr : context;
    }
    const grpc::Status status = collector_->Export(context.get(), request, &response);
    {
      absl::MutexLock lock(&mutex_);
      sending_ = nullptr;
    }
    if (status.ok()) {
      const int64_t rejected = response.partial_success().rejected_spans();
      const uint64_t lost =
          std::min<uint64_t>(rejected > 0 ? static_cast<uint64_t>(rejected) : 0, spans);
      exported_ += spans - lost;
      dropped_ += lost;
      return;
    }
    if (last || !IsPassing(status.error_code())) {
      dropped_ += spans;
      // Waiting spans would fare no better, and the process is to end.
      absl::MutexLock lock(&mutex_);
      for (; last && !waiting_.empty(); waiting_.pop_front()) {
        dropped_ += static_cast<uint64_t>(NumSpans(waiting_.front()));
      }
      return;
    }
    Rest(rest);  // Shorter if the exporter ends: one more attempt then.
    rest = std::min(rest * 2, kLongestRest);
  }
}

}  // namespace longview::server
