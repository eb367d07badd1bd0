// Rows that a layer reads and writes, and the plans of attention over them: the host side of a
// layer, built once per batch and attention pattern.
//
// All layers but the last take every row to every row. The last one computes only the rows that
// heads read: their neighbourhood gives keys and values, everything else is left out. That is
// exact, and a row's result does not depend on which others are wanted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/span/plan.h"
#include "models/encoder/sequence.h"
#include "models/longformer/config.h"

namespace longview::models {

// A global token whose output the layer needs.
struct GlobalRow {
  int32_t sequence;
  int32_t row;  // Row of x, the ragged batch.
  int32_t out;  // Row of the layer's output.
};

// Range of a sequence's global rows in one of the lists below.
struct GlobalGroup {
  int32_t sequence;
  int32_t first;  // Index into folded or unfolded.
  int32_t count;
  int32_t row0;  // First row of the sequence in x.
  int32_t tokens;
  int32_t key_row0;  // Unfolded: first row of its global keys and values.
};

struct LayerPlan {
  kernels::Plan band;  // Local rows.
  bool whole = true;   // Every row in, every row out.
  // Only if not whole:
  std::vector<int32_t> local_rows;  // Rows of x that need local q, k, v; ascending.
  std::vector<int32_t> query_rows;  // Per output row: index into local_rows, or -1.
  std::vector<int32_t> out_rows;    // Row of x per output row; ascending.

  // Global rows by how they are computed. Few global tokens: the key and value projections are
  // folded into one vector per head and global token (no n x H products); many: projected
  // keys and values and the full-attention plan.
  std::vector<GlobalRow> folded, unfolded;
  std::vector<GlobalGroup> folded_groups, unfolded_groups;
  kernels::Plan full;
  int64_t global_key_rows = 0;  // Sum of tokens of the unfolded groups.

  int64_t inputs = 0;   // Rows of x.
  int64_t locals = 0;   // Rows with local projections.
  int64_t outputs = 0;  // Rows of the output.
};

// Whether a sequence with `globals` global tokens folds their projections: its own count against
// the width decides, never the batch.
bool FoldsGlobals(const LongformerConfig& config, int globals);

// REQUIRES: layer < config.layers. `offsets` has one entry more than `sequences`: the ragged
// rows. `subset`: outputs are the wanted rows only.
LayerPlan PlanLayer(const LongformerConfig& config, int layer,
                    std::span<const EncoderSequence* const> sequences,
                    std::span<const int32_t> offsets, bool subset, int tile_rows);

}  // namespace longview::models
