// Storage of the tensor-core forwards: registers of a lane, and span_tile.h's shared memory.
#pragma once

#include <cstdint>

#include "kernels/cuda/base/element.h"
#include "kernels/span/plan.h"

namespace longview::kernels::cuda {

inline constexpr int kTileThreads = 128;
inline constexpr int kTileWarps = kTileThreads / 32;
inline constexpr int kWarpRows = 16;

// Table rows that one Dotted product of a warp may span: those of its 16 rows with 64 keys when
// neighbouring rows read neighbouring entries.
inline constexpr int kDottedEntries = 80;

// Shared memory of the program for heads padded to kD: two stages of K and V, rows 16 bytes apart
// from a multiple of 32 so that eight rows' pieces lie in different banks. Plans with biases have a
// matrix of Dotted products for each warp behind it.
template <int kD>
struct TileShared {
  static constexpr int kPitch = kD + 8;
  static constexpr int kMatrix = kBlockSlots * kPitch;  // Elements of one K or V block.
  static constexpr int kBytes = 2 * 2 * kMatrix * 2;
  static constexpr int kDottedPitch = kDottedEntries + 4;
  static constexpr int kBytesWithBias = kBytes + kTileWarps * kWarpRows * kDottedPitch * 4;
};

// The part of its rows that one lane holds. Rows g = lane / 4 and g + 8 of the warp's 16; `pair`
// below is which of the two.
template <int kD>
struct RowLane {
  uint32_t q[kD / 16][4];  // Queries, the left operand of scores.
  float o[kD / 8][4];      // Weighted sums: [8 columns][row g: 2, row g + 8: 2].
  float s[8][4];           // Scores of the block, then weights: [8 keys][the same].
  uint32_t p[4][4];        // Weights in 16 bits, the left operand of sums.
  uint64_t keys[2];        // Bit j of a row: it sees key j of the block.
  float m[2];
  float l[2];  // This lane's share of the row's sum.
  float top[2];
};

// RowLane with the registers of span_tile.h's loads and biases.
template <int kD>
struct TileLane : RowLane<kD> {
  uint32_t b[4];                      // Right operand on its way from shared memory.
  float dots[kDottedEntries / 8][4];  // Dotted products before the scores are made.
};

// The shared memory of one stage.
struct TileStage {
  uint16_t* k;
  uint16_t* v;
};

}  // namespace longview::kernels::cuda
