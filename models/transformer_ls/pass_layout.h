// Rows that one pass over the layers computes, and the plans of attention and pooling over them:
// the host side of a pass, built once for all layers.
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
  // Parts of `rows` and of `wanted` whose linears take many rows: they come first. The rest
  // decodes, through the linears' path for few rows.
  int64_t many_rows = 0, many_wanted = 0;

  std::vector<SegmentPiece> pieces;  // Pieces of all rows, in order.
  int64_t closed = 0;                // Segments that end, of all groups.

  // Entries that each decoding run reads of either table of position scores.
  std::vector<int32_t> window_limits, segment_limits;
  int64_t segment_stride = 0;    // Distance of neighbouring rows of those scores.
  int64_t most_segment_ids = 0;  // Entries that any row reads, at most.
};

// `runs` in any order; a sequence occurs once.
LsPassLayout LayOutLsPass(const LsContext& context, std::vector<TokenRun> runs);

}  // namespace longview::models
