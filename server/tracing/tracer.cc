#include "server/tracing/tracer.h"

#include <limits>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_format.h"
#include "server/scheduler/steady_clock.h"
#include "server/tracing/span_exporter.h"

namespace longview::server {
namespace {

uint64_t RandomBits() {
  thread_local absl::InsecureBitGen random;
  // Zero is no id.
  return absl::Uniform<uint64_t>(random, 1, std::numeric_limits<uint64_t>::max());
}

std::string NewSpanId() { return absl::StrFormat("%016x", RandomBits()); }

}  // namespace

class Tracer::Impl {
 public:
  explicit Impl(TracerOptions options)
      : ratio(options.sample_ratio), exporter(std::move(options)) {}

  const double ratio;
  SpanExporter exporter;
};

Tracer::Tracer(TracerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Tracer::~Tracer() = default;

void Tracer::Trace(CallInfo& info) {
  TraceContext& context = info.trace;
  if (context.trace_id.empty()) {
    const uint64_t low = RandomBits();
    if (static_cast<double>(low) >= impl_->ratio * 0x1p64) return;
    context.trace_id = absl::StrFormat("%016x%016x", RandomBits(), low);
    context.sampled = true;
  }
  if (!context.sampled) return;
  CallTrace trace;
  trace.trace_id = context.trace_id;
  trace.span_id = NewSpanId();
  trace.parent_id = context.parent_id;
  trace.whole.begin = info.arrival == absl::InfinitePast() ? SteadyNow() : info.arrival;
  info.spans = std::make_shared<CallSpans>(impl_->exporter, std::move(trace));
}

TracerCounts Tracer::counts() const { return impl_->exporter.counts(); }

}  // namespace longview::server
