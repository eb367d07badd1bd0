#include "models/transformer_ls/pass_layout.h"

#include "models/transformer_ls/append_segments.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "kernels/cuda/span/decode_plan.h"

namespace longview::models {
namespace {

void AddPieces(const LsLmConfig& config, const TokenRun& run, LsGroup& group,
               LsPassLayout& layout) {
  const int64_t end = run.start + run.rows();
  for (int64_t t = run.start; t < end;) {
    const int64_t next = std::min(end, (t / config.segment + 1) * config.segment);
    SegmentPiece& piece = layout.pieces.emplace_back();
    piece.begin = static_cast<int32_t>(run.row0 + t - run.start);
    piece.end = static_cast<int32_t>(run.row0 + next - run.start);
    piece.resumes = t % config.segment != 0;
    piece.closes = next % config.segment == 0;
    piece.last = next == end;
    if (run.sequence != nullptr) piece.sequence = &run.sequence->cache();
    group.closed += piece.closes ? 1 : 0;
    t = next;
  }
}

// Scores are made before a device cuts the plan.
void ReadPositions(const LsContext& context, std::span<const TokenRun> runs, LsGroup& group,
                   LsPassLayout& layout) {
  const kernels::SchedulePattern pattern = context.config->pattern();
  for (const TokenRun& run : runs) {
    const auto seen = static_cast<int32_t>(std::min<int64_t>(run.start + 1, pattern.window));
    layout.window_limits.push_back(pattern.zero_memory ? pattern.window : seen);
    layout.segment_limits.push_back(static_cast<int32_t>(pattern.SegmentIds(run.start)));
    layout.segment_stride = std::max<int64_t>(layout.segment_stride, layout.segment_limits.back());
  }
  // Steps of like sizes are one recording.
  if (context.on_device) {
    const int64_t most = std::max<int64_t>(kernels::kBlockSlots, layout.segment_stride);
    layout.segment_stride = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(most)));
  }
  ReadScores(static_cast<int32_t>(group.row0), pattern.window, layout.segment_stride, group.plan);
  if (context.on_device) group.plan = kernels::cuda::CutForDecode(group.plan);
}

void PlanGroup(const LsContext& context, LsGroup& group, LsPassLayout& layout) {
  const kernels::SchedulePattern pattern = context.config->pattern();
  const auto runs = std::span(layout.runs)
                        .subspan(static_cast<size_t>(group.run0), static_cast<size_t>(group.runs));
  std::vector<kernels::ScheduleRun> queries;
  for (const TokenRun& run : runs) {
    queries.push_back({static_cast<int32_t>(run.row0), static_cast<int32_t>(run.rows()),
                       static_cast<int32_t>(run.start)});
    AddPieces(*context.config, run, group, layout);
    layout.most_segment_ids =
        std::max(layout.most_segment_ids, pattern.MostSegmentIds(run.start + run.rows()));
  }
  const bool fresh = group.group == kernels::CacheStep::kPrefill;
  group.sources = pattern.Sources(fresh);
  group.plan = PlanSchedule(pattern, fresh, queries, context.tile_rows);
  if (group.decodes()) ReadPositions(context, runs, group, layout);
  layout.rows += group.rows;
  layout.closed += group.closed;
}

}  // namespace

LsPassLayout LayOutLsPass(const LsContext& context, std::vector<TokenRun> runs) {
  LsPassLayout layout;
  layout.runs = std::move(runs);
  layout.wanted = layout.many_wanted = WantedRows(layout.runs);
  const std::array<RunGroup, 3> groups = SortRuns(layout.runs);
  for (size_t g = 0; g < groups.size(); ++g) {
    static_cast<RunGroup&>(layout.groups[g]) = groups[g];
    if (groups[g].runs > 0) PlanGroup(context, layout.groups[g], layout);
  }
  layout.many_rows = layout.rows;
  if (context.few_rows) {
    const LsGroup& decode = layout.groups[2];
    layout.many_rows = decode.row0;
    layout.many_wanted = WantedRows(std::span(layout.runs).first(static_cast<size_t>(decode.run0)));
  }
  return layout;
}

}  // namespace longview::models
