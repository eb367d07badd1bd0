// One instruction set's part of the tile walk: arithmetic on one block of 64 keys, and
// packing. Internal to kernels/span.
//
// tile_walk.cc, compiled for any x86-64, does the bookkeeping of a tile and calls these a few
// times per block. The files behind them have their own compiler flags and include plain data
// only, so this header has no inline code.
#pragma once

#include <cstddef>
#include <cstdint>

namespace longview::kernels {

inline constexpr int kBlockKeys = 64;

// Running softmax of the rows of one tile and head, in a thread's scratch; 64-byte aligned.
struct TileState {
  int rows = 0;
  int dk = 0;          // Multiple of 16 (float panels) or 32 (bfloat16 panels), as KvLayout pads.
  int dv = 0;          // Multiple of 16 or 32, like dk.
  float scale = 0;     // Scale of finished scores; holds log2(e).
  void* q = nullptr;   // [64][dk] float or bfloat16, zero-padded.
  float* s = nullptr;  // [64][64] scores, then weights, of one block.
  float* o = nullptr;  // [64][dv] weighted sums, not divided by l.
  float* l = nullptr;  // [64][16] sums of weights, one per lane.
  float* m = nullptr;  // [64] weights are 2^(score - m); kLowestScore: no key seen.
};

// The m of a row that has seen no key: finite, so that a masked score of -inf minus m is -inf.
inline constexpr float kLowestScore = -3.402823466e38f;

// A row keeps its m until a score exceeds it by more than this, so most blocks rescale nothing
// and need no horizontal maximum. Weights stay below 2^8: sums keep all their bits.
inline constexpr float kRescaleAbove = 8.0f;

// One block of keys for all rows of a tile.
struct BlockWork {
  const std::byte* k = nullptr;  // One head's block, KvLayout.
  const std::byte* v = nullptr;
  const uint64_t* masks = nullptr;    // [rows] bit j: the row sees key j. Null: all see all.
  const float* bias = nullptr;        // [rows][64] added to scaled scores. Null: none.
  const std::byte* next_k = nullptr;  // A block that is likely to be needed next, or null.
  const std::byte* next_v = nullptr;
};

// Rows to pack into one head's block; key i is rows[i], -1 = zeros.
struct PackWork {
  const void* k = nullptr;  // The head's column of row 0.
  const void* v = nullptr;
  bool from_bfloat16 = false;
  int64_t k_row_stride = 0;  // Elements.
  int64_t v_row_stride = 0;
  const int32_t* rows = nullptr;  // [64]
  int dk = 0, dv = 0;
  int padded_dk = 0, padded_dv = 0;
  std::byte* k_block = nullptr;
  std::byte* v_block = nullptr;
};

// Functions of one instruction set. They allocate nothing and keep nothing.
struct VectorOps {
  bool bfloat16_panels = false;  // And bfloat16 queries.
  // Adds one block to the state of every row that sees one of its keys.
  void (*add_block)(const TileState& state, const BlockWork& block) = nullptr;
  // out[r * out_stride + j] = q[r] . key j for 64 keys of a float K panel and `rows` float
  // queries, dk apart; one chain over dk per product.
  void (*dots)(const float* q, int rows, const float* panel, int dk, float* out,
               int out_stride) = nullptr;
  void (*pack)(const PackWork& work) = nullptr;
  // The keys alone, always as a float panel.
  void (*pack_float_keys)(const PackWork& work) = nullptr;
  // Around a thread's work in a parallel region; null: nothing to do.
  void (*enter)() = nullptr;
  void (*leave)() = nullptr;
};

extern const VectorOps kAvx2Ops;
extern const VectorOps kAvx512Ops;
extern const VectorOps kAvx512Bf16Ops;
extern const VectorOps kAmxOps;

}  // namespace longview::kernels
