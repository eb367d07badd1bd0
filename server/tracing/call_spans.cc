#include "server/tracing/call_spans.h"

#include <algorithm>

namespace longview::server {

void CallSpans::Begin(CallPart part, absl::Time time) {
  absl::MutexLock lock(&mutex_);
  if (finished_) return;
  SpanTimes& times = trace_.parts[static_cast<size_t>(part)];
  times.begin = std::min(times.begin, time);
  ++open_[static_cast<size_t>(part)];
}

void CallSpans::End(CallPart part, absl::Time time) {
  absl::MutexLock lock(&mutex_);
  int& open = open_[static_cast<size_t>(part)];
  if (finished_ || open == 0) return;
  --open;
  SpanTimes& times = trace_.parts[static_cast<size_t>(part)];
  times.end = std::max({times.end, time, times.begin});
}

void CallSpans::Close(absl::Time end) {
  trace_.whole.end = std::max(end, trace_.whole.begin);
  for (size_t i = 0; i < trace_.parts.size(); ++i) {
    SpanTimes& times = trace_.parts[i];
    if (open_[i] > 0) times.end = std::max(end, times.begin);
  }
}

}  // namespace longview::server
