#include "models/transformer_ls/pass_layout.h"

#include <algorithm>
#include <utility>

namespace longview::models {
namespace {

using kernels::CacheStep;

void AddPieces(const LsLmConfig& config, int run, const TokenRun& tokens, int64_t* closed,
               LsPassLayout& layout) {
  const int64_t end = tokens.start + static_cast<int64_t>(tokens.ids.size());
  for (int64_t t = tokens.start; t < end;) {
    const int64_t next = std::min(end, (t / config.segment + 1) * config.segment);
    LsPiece& piece = layout.pieces.emplace_back();
    piece.run = run;
    piece.resumes = t % config.segment != 0;
    piece.closes = next % config.segment == 0;
    piece.last = next == end;
    layout.piece_rows.push_back(static_cast<int32_t>(tokens.row0 + t - tokens.start));
    *closed += piece.closes ? 1 : 0;
    t = next;
  }
}

void PlanGroup(const LsLmConfig& config, int tile_rows, LsGroup& group, LsPassLayout& layout) {
  const kernels::SchedulePattern pattern = config.pattern();
  std::vector<kernels::ScheduleRun> queries;
  for (int i = group.run0; i < group.run0 + group.runs; ++i) {
    const TokenRun& run = layout.runs[i];
    queries.push_back({static_cast<int32_t>(run.row0), static_cast<int32_t>(run.ids.size()),
                       static_cast<int32_t>(run.start)});
  }
  const bool fresh = group.group == CacheStep::kPrefill;
  group.sources = pattern.Sources(fresh);
  group.plan = PlanSchedule(pattern, fresh, queries, tile_rows);
  if (group.group != CacheStep::kDecode) return;
  for (const kernels::ScheduleRun& query : queries) {
    layout.segment_stride = std::max(layout.segment_stride, pattern.SegmentIds(query.start));
  }
  layout.window_entries = group.runs * int64_t{config.window};
  layout.segment_entries = group.runs * layout.segment_stride;
  ReadScores(static_cast<int32_t>(group.row0), config.window, layout.segment_stride, group.plan);
}

}  // namespace

LsPassLayout LayOutPass(const LsLmConfig& config, std::vector<TokenRun> runs, int tile_rows) {
  LsPassLayout layout;
  layout.runs = std::move(runs);
  layout.wanted = WantedRows(layout.runs);
  const std::array<RunGroup, 3> groups = SortRuns(layout.runs);
  for (size_t g = 0; g < groups.size(); ++g) {
    LsGroup& group = layout.groups[g];
    static_cast<RunGroup&>(group) = groups[g];
    for (int i = group.run0; i < group.run0 + group.runs; ++i) {
      const TokenRun& run = layout.runs[i];
      AddPieces(config, i, run, &layout.closed[g], layout);
      layout.most_segment_ids = std::max(layout.most_segment_ids,
                                         config.pattern().MostSegmentIds(run.start + run.rows()));
    }
    layout.rows += group.rows;
    PlanGroup(config, tile_rows, group, layout);
  }
  layout.piece_rows.push_back(static_cast<int32_t>(layout.rows));
  return layout;
}

}  // namespace longview::models
