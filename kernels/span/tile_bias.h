// Biases of one block as a dense matrix, ready to be added to scaled scores.
#pragma once

#include "kernels/span/tile_kernel.h"
#include "kernels/span/vector_ops.h"

namespace longview::kernels {

// Table rows that one Dotted product of a whole tile may span.
inline constexpr int kDottedEntries = 2 * kBlockKeys;

// Room for a tile's biases in a thread's scratch.
struct BiasScratch {
  float* matrix = nullptr;    // [rows][64]
  float* q = nullptr;         // Dotted: [rows][padded Dk] queries with dot_add.
  float* panel = nullptr;     // Dotted: one float K panel of table rows.
  float* products = nullptr;  // Dotted: [rows][kDottedEntries]
  int dk = 0;                 // Padded.
};

bool HasDotted(const Plan& plan);

// Queries for a Dotted bias into scratch.q.
void GatherDottedQueries(const Call& call, const Tile& tile, int head, const Table& table,
                         const BiasScratch& scratch);

// Fills scratch.matrix for the 64 keys whose first has span coordinate `key0` (negative when
// the span starts inside the block). Entries of keys that a row does not see stay undefined.
// masks[i] bit j: row i sees key j.
void FillBias(const VectorOps& ops, const Call& call, const Tile& tile, int head, const Bias& bias,
              int32_t key0, const uint64_t* masks, const BiasScratch& scratch);

}  // namespace longview::kernels
