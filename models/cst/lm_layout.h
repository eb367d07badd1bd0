// Rows that one pass of the language model computes, the slices that they are parts of, and what
// goes from pass to pass in the states of sequences: the host side of a pass, built once for all
// layers.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/pool/slice_rows.h"
#include "kernels/span/plan.h"
#include "models/cst/config.h"
#include "models/generation/decoder/token_run.h"

namespace longview::models {

struct CstGroup : RunGroup {
  int32_t closing0 = 0, closings = 0;  // Slices that end in it.
  // Tokens over their slices. Sources: zero tokens (zero boundary), cached blocks, fresh rows.
  kernels::Plan tokens;
  // Slices that end in the group, over their own and all earlier ones. Source: cached blocks.
  kernels::Plan slices;
};

// A row of a pass, and its place in the state of a run's sequence.
struct CstStateUse {
  int run = 0;
  bool global = false;  // True: in Y_g; false: in the open slice.
  int64_t offset = 0;   // Floats before the row there.
  int32_t row = 0;
};

struct CstLmLayout {
  std::vector<TokenRun> runs;  // Sorted by group.
  std::array<CstGroup, 3> groups;
  int64_t wanted = 0;  // Rows of logits.

  // Per row.
  std::vector<int32_t> ids, positions, kinds;
  std::vector<int32_t> token_entries;  // Row of the biases of places.
  // Row of the slices' outputs that is added: of those that end in the pass, then of each run's
  // open slice, as it was before; -1: none, as in a document's first slice.
  std::vector<int32_t> globals;
  // slice_pooling `linear`: the place among the slices that end, L rows each; -1: of none.
  std::vector<int32_t> pooled_places;

  // Parts of slices: those that end, in order, then those that stay open.
  std::vector<kernels::SlicePart> parts;
  int32_t closings = 0;
  std::vector<int32_t> slice_entries;  // Per slice that ends: row of the biases of slices.
  std::vector<bool> snapshots;         // Whether it ends at a multiple of the prefill alignment.

  // Sums of open slices (linear: their rows) from states and to them; Y_g likewise.
  std::vector<CstStateUse> sums_in, sums_out, globals_in, globals_out;

  int64_t rows() const { return static_cast<int64_t>(ids.size()); }
  // Rows of the slices' outputs.
  int64_t global_rows() const { return closings + static_cast<int64_t>(runs.size()); }
};

// `runs` in any order; a sequence occurs once.
CstLmLayout LayOutCstLm(const CstConfig& config, std::vector<TokenRun> runs, int tile_rows);

}  // namespace longview::models
