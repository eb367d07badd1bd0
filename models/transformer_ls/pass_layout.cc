#include "models/transformer_ls/pass_layout.h"

#include <algorithm>

namespace longview::models {
namespace {

using kernels::CacheStep;

void AddPieces(const LsLmConfig& config, int run, const LsRun& tokens, int64_t* closed,
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
  std::vector<LsQueryRun> queries;
  for (int i = group.run0; i < group.run0 + group.runs; ++i) {
    const LsRun& run = layout.runs[i];
    queries.push_back({static_cast<int32_t>(run.row0), static_cast<int32_t>(run.ids.size()),
                       static_cast<int32_t>(run.start)});
  }
  const bool fresh = group.group == CacheStep::kPrefill;
  group.sources = LsSources(config, fresh);
  group.plan = PlanLsAttention(config, fresh, queries, tile_rows);
  if (group.group != CacheStep::kDecode) return;
  for (const LsQueryRun& query : queries) {
    layout.segment_stride = std::max(layout.segment_stride, SegmentIds(config, query.start));
  }
  for (size_t i = 0; i < queries.size(); ++i) {
    layout.window_entry.push_back(layout.window_entries);
    layout.segment_entry.push_back(layout.segment_entries);
    layout.window_entries += config.window;
    layout.segment_entries += layout.segment_stride;
  }
  ReadScores(layout.window_entry, layout.segment_entry, static_cast<int32_t>(group.row0),
             group.plan);
}

}  // namespace

LsPassLayout LayOutPass(const LsLmConfig& config, std::vector<LsRun> runs, int tile_rows) {
  LsPassLayout layout;
  for (size_t g = 0; g < layout.groups.size(); ++g) {
    LsGroup& group = layout.groups[g];
    group.group = LsPassLayout::kOrder[g];
    group.run0 = static_cast<int>(layout.runs.size());
    group.row0 = layout.rows;
    for (LsRun& run : runs) {
      if (run.group != group.group) continue;
      run.row0 = layout.rows;
      const auto tokens = static_cast<int64_t>(run.ids.size());
      AddPieces(config, static_cast<int>(layout.runs.size()), run, &layout.closed[g], layout);
      layout.rows += tokens;
      layout.wanted += run.wanted;
      layout.most_segment_ids =
          std::max(layout.most_segment_ids, MostSegmentIds(config, run.start + tokens));
      layout.runs.push_back(run);
    }
    group.runs = static_cast<int>(layout.runs.size()) - group.run0;
    group.rows = layout.rows - group.row0;
    PlanGroup(config, tile_rows, group, layout);
  }
  layout.piece_rows.push_back(static_cast<int32_t>(layout.rows));
  return layout;
}

}  // namespace longview::models
