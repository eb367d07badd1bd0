// Which rows one pass over the layers computes, and what attention and pooling do with them: the
// host side of a pass, built once for all layers.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/span/plan.h"
#include "kernels/span/schedule_planner.h"
#include "models/generation/decoder/token_run.h"
#include "models/transformer_ls/append_segments.h"
#include "models/transformer_ls/context.h"

namespace longview::models {

struct LsGroup : RunGroup {
  kernels::ScheduleSources sources;
  kernels::Plan plan;
  int64_t closed = 0;  // Segments that end.

  bool decodes() const { return group == kernels::CacheStep::kDecode; }
};

struct LsPassLayout {
  std::vector<TokenRun> runs;  // Sorted by group.
  std::array<LsGroup, 3> groups;
  int64_t rows = 0;
  int64_t wanted = 0;  // Rows of logits.
  // Those of both whose linears take many rows: they come first. The rest decodes, where linears
  // have a way of their own for few rows.
  int64_t many_rows = 0, many_wanted = 0;

  std::vector<SegmentPiece> pieces;  // They cover all rows, in order.
  int64_t closed = 0;                // Segments that end, of all groups.

  // Scores of positions, of the runs that decode: the entries that each reads of either table, and
  // how far the rows of scores are apart.
  std::vector<int32_t> window_limits, segment_limits;
  int64_t segment_stride = 0;
  int64_t most_segment_ids = 0;  // Entries that any row reads, at most.
};

// `runs` in any order; a sequence occurs once.
LsPassLayout LayOutLsPass(const LsContext& context, std::vector<TokenRun> runs);

}  // namespace longview::models
