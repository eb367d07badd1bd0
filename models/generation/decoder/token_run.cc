#include "models/generation/decoder/token_run.h"

#include <algorithm>

namespace longview::models {

using kernels::CacheStep;

namespace {

constexpr std::array<CacheStep::Group, 3> kOrder = {CacheStep::kPrefill, CacheStep::kResume,
                                                    CacheStep::kDecode};

}  // namespace

std::array<RunGroup, 3> SortRuns(std::vector<TokenRun>& runs) {
  const auto place = [](const TokenRun& run) {
    return std::find(kOrder.begin(), kOrder.end(), run.group) - kOrder.begin();
  };
  std::stable_sort(runs.begin(), runs.end(),
                   [&](const TokenRun& a, const TokenRun& b) { return place(a) < place(b); });
  std::array<RunGroup, 3> groups;
  int run = 0;
  int64_t row = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    RunGroup& group = groups[g];
    group.group = kOrder[g];
    group.run0 = run;
    group.row0 = row;
    for (; run < static_cast<int>(runs.size()); ++run) {
      TokenRun& next = runs[static_cast<size_t>(run)];
      if (next.group != group.group) break;
      next.row0 = row;
      row = next.end();
    }
    group.runs = run - group.run0;
    group.rows = row - group.row0;
  }
  return groups;
}

int64_t WantedRows(std::span<const TokenRun> runs) {
  int64_t wanted = 0;
  for (const TokenRun& run : runs) wanted += run.wanted;
  return wanted;
}

absl::Status AppendRuns(std::span<const TokenRun> runs, CacheStep& step) {
  // Decoding first, as the cache wants it.
  for (const CacheStep::Group group :
       {CacheStep::kDecode, CacheStep::kResume, CacheStep::kPrefill}) {
    for (const TokenRun& run : runs) {
      if (run.group == group && !step.Append(group, &run.sequence->cache(), run.ids)) {
        return absl::ResourceExhaustedError("cache: no memory for a sequence's next tokens");
      }
    }
  }
  return absl::OkStatus();
}

LongestRuns::LongestRuns(int64_t max_tokens, int64_t prefill, int decoding, int64_t last)
    : ids(static_cast<size_t>(std::max<int64_t>(prefill, 1))) {
  const auto add = [&](CacheStep::Group group, int64_t tokens, int64_t start) {
    TokenRun& run = runs.emplace_back();
    run.group = group;
    run.ids = std::span(ids).first(static_cast<size_t>(tokens));
    run.start = start;
    run.wanted = 1;
  };
  if (prefill > 0) {
    const int64_t start = std::max<int64_t>(0, max_tokens - prefill);
    add(CacheStep::kPrefill, prefill, start / kernels::kBlockSlots * kernels::kBlockSlots);
  }
  for (int i = 0; i < decoding; ++i) add(CacheStep::kDecode, 1, last);
}

}  // namespace longview::models
