// Which rows one pass over the layers computes, and what attention and pooling do with them: the
// host side of a pass, built once for all layers.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/span/plan.h"
#include "kernels/span/schedule_planner.h"
#include "models/generation/token_run.h"
#include "models/transformer_ls/config.h"

namespace longview::models {

struct LsGroup : RunGroup {
  kernels::ScheduleSources sources;
  kernels::Plan plan;
};

// Rows of one segment in one run. Pieces cover all rows, in order.
struct LsPiece {
  int run = 0;
  bool resumes = false;  // The segment was begun in an earlier pass.
  bool closes = false;   // The piece ends the segment.
  bool last = false;     // Of its run.
};

struct LsPassLayout {
  std::vector<TokenRun> runs;  // Sorted by group.
  std::array<LsGroup, 3> groups;
  int64_t rows = 0;
  int64_t wanted = 0;  // Rows of logits.

  std::vector<LsPiece> pieces;
  std::vector<int32_t> piece_rows;     // First row of each piece, and the end.
  std::array<int64_t, 3> closed = {};  // Segments finished, by group.

  // Position scores of the decode group, of all runs. Every run has as many of segments as the
  // longest.
  int64_t window_entries = 0, segment_entries = 0;
  int64_t segment_stride = 0;

  int64_t closed_segments() const { return closed[0] + closed[1] + closed[2]; }
  int64_t most_segment_ids = 0;  // Of any row.
};

// `runs` in any order; a sequence occurs once.
LsPassLayout LayOutPass(const LsLmConfig& config, std::vector<TokenRun> runs, int tile_rows);

}  // namespace longview::models
