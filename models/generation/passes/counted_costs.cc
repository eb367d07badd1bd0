#include "models/generation/passes/counted_costs.h"

#include <algorithm>
#include <utility>

#include "models/generation/passes/host_token_pass.h"

namespace longview::models {

CountedCosts::CountedCosts(Make make, Terms terms)
    : make_(std::move(make)), terms_(std::move(terms)) {
  const int64_t chunk = std::min<int64_t>(terms_.prefill_alignment, terms_.max_tokens);
  const int64_t last = (terms_.max_tokens - chunk) / chunk * chunk;
  std::vector<int64_t> starts = {0};
  for (int64_t start = chunk; start < last; start *= 2) starts.push_back(start);
  if (last > 0) starts.push_back(last);
  for (const int64_t start : starts) {
    const EncoderWork work = WorkOf(start, chunk);
    const auto tokens = static_cast<double>(chunk);
    points_.push_back({static_cast<double>(start) + (tokens - 1) / 2,
                       work.attention / tokens - terms_.attend_work});
    linear_ = work.linear / tokens;
    rows_ = work.rows / tokens;
  }
}

EncoderWork CountedCosts::WorkOf(int64_t start, int64_t tokens) const {
  const std::vector<int32_t> ids(static_cast<size_t>(tokens));
  std::vector<TokenRun> runs(1);
  runs[0].ids = ids;
  runs[0].start = start;
  runs[0].wanted = tokens;
  const std::unique_ptr<TokenForward> forward = make_(std::move(runs), tokens);
  const ForwardCount count = terms_.host != nullptr ? CountOnHost(*forward, *terms_.host)
                                                    : CountOnDevice(*forward, terms_.compute);
  return count.work;
}

double CountedCosts::AttentionWork(int64_t t) const {
  if (points_.size() == 1) return points_[0].attention;
  const auto at = static_cast<double>(t);
  auto next = std::ranges::lower_bound(points_, at, {}, &Point::position);
  next = std::clamp(next, points_.begin() + 1, points_.end() - 1);
  const Point &a = *(next - 1), &b = *next;
  const double slope = (b.attention - a.attention) / (b.position - a.position);
  return std::max(0.0, a.attention + slope * (at - a.position));
}

double CountedCosts::StateBytes(int64_t shared, int64_t longest, int sequences) const {
  return static_cast<double>(terms_.shape.SequenceBytes(shared, longest, sequences));
}

// At the end of the longest text, where a step reads most.
double CountedCosts::WorkspaceBytes(int64_t prefill_tokens, int sequences) const {
  const double row_bytes = 4.0 * terms_.vocab;
  if (terms_.host == nullptr) return row_bytes * (sequences + (prefill_tokens > 0 ? 1 : 0));
  LongestRuns longest(terms_.max_tokens, prefill_tokens, sequences, terms_.costliest);
  const int64_t wanted = WantedRows(longest.runs);
  const std::unique_ptr<TokenForward> forward = make_(std::move(longest.runs), wanted);
  return HostTokenPass::WorkspaceBytes(*forward, *terms_.host) +
         row_bytes * static_cast<double>(wanted);
}

}  // namespace longview::models
