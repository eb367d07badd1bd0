// Which rows one pass over the layers computes, and what attention and pooling do with them: the
// host side of a pass, built once for all layers.
//
// Rows come in three groups: chunks of prefill that begin at a block of the cache (`fresh`: their
// keys are read from the pass's own rows), pieces of prefill that begin inside one (their keys are
// written to the cache first), single tokens of decoding (likewise). The first two agree in bits.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cache/cache_step.h"
#include "kernels/span/plan.h"
#include "models/transformer_ls/attention_plan.h"

namespace longview::models {

// Tokens one sequence reads in a pass.
struct LsRun {
  kernels::CacheStep::Group group = kernels::CacheStep::kPrefill;
  kernels::CacheSequence* sequence = nullptr;
  std::span<const int32_t> ids;
  int64_t start = 0;        // Position of the first.
  int64_t wanted = 0;       // Of the last so many rows logits are wanted,
  float* logits = nullptr;  // here: [wanted, V].
  int64_t row0 = 0;         // Set by the layout.
};

struct LsGroup {
  kernels::CacheStep::Group group = kernels::CacheStep::kPrefill;
  int run0 = 0, runs = 0;
  int64_t row0 = 0, rows = 0;
  std::vector<LsSource> sources;
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
  // In the order of rows.
  static constexpr std::array<kernels::CacheStep::Group, 3> kOrder = {
      kernels::CacheStep::kPrefill, kernels::CacheStep::kResume, kernels::CacheStep::kDecode};

  std::vector<LsRun> runs;  // Sorted by group.
  std::array<LsGroup, 3> groups;
  int64_t rows = 0;
  int64_t wanted = 0;  // Rows of logits.

  std::vector<LsPiece> pieces;
  std::vector<int32_t> piece_rows;     // First row of each piece, and the end.
  std::array<int64_t, 3> closed = {};  // Segments finished, by group.

  // Position scores of the decode group: first entry per run, and the sum. Every run has as many
  // as the longest.
  std::vector<int64_t> window_entry, segment_entry;
  int64_t window_entries = 0, segment_entries = 0;
  int64_t segment_stride = 0;

  int64_t closed_segments() const { return closed[0] + closed[1] + closed[2]; }
  int64_t most_segment_ids = 0;  // Of any row.
};

// `runs` in any order; a sequence occurs once.
LsPassLayout LayOutPass(const LsLmConfig& config, std::vector<LsRun> runs, int tile_rows);

}  // namespace longview::models
