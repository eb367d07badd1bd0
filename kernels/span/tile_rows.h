// Rows of a tile on their way in and out: queries into scratch, sums to output rows or
// partial states.
#pragma once

#include "kernels/span/tile_kernel.h"
#include "kernels/span/vector_ops.h"

namespace longview::kernels {

// Index of query row `i` of a tile in the call's tensors.
inline int64_t TileRow(const Tile& tile, int i) {
  return tile.row0 + static_cast<int64_t>(i) * tile.row_step;
}

// Writes q[row] + add for one head as floats, `stride` apart; add is [Dk] or null. Columns
// from Dk to stride become zeros.
void GatherFloatQueries(const Call& call, const Tile& tile, int head, const float* add, int stride,
                        float* out);

// GatherFloatQueries in bfloat16, the sum rounded once.
void GatherBf16Queries(const Call& call, const Tile& tile, int head, const float* add, int stride,
                       uint16_t* out);

// Draws rows [first, first + rows) of a tile's queries, of its outputs, into the second-level
// cache. Rows lie pages apart, so without it every tile waits for as many page walks.
void PrefetchQueries(const Call& call, const Tile& tile, int head, int first, int rows);
void PrefetchOutputs(const Call& call, const Tile& tile, int head, int first, int rows);

// Divides by the sums of weights and writes output rows; rows that saw no key become zeros.
void StoreRows(const Call& call, const Tile& tile, int head, const TileState& state);

// Writes unfinished states to the tile's partial slots.
void StorePartials(const PartialStates& partials, const Call& call, const Tile& tile, int head,
                   const TileState& state);

}  // namespace longview::kernels
