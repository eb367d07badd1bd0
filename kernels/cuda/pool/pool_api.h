// Weighted means over segments of tokens on the device: kernels/pool/segment_pool.h.
//
// Whole segments are pooled in pieces of kPoolPiece tokens, counted from the segment's first, then
// the pieces of a segment are merged in rising order: bits depend on the segment alone. An open
// segment is appended to token by token, one chain, however many tokens a call brings; its means
// are what reads its state makes of it (decoder_rows/token_api.h).
#pragma once

#include <cstdint>

#include "kernels/cuda/base/plugin_types.h"
#include "kernels/span/kv_layout.h"

namespace longview::kernels::cuda {

inline constexpr int kPoolPiece = 256;

// A run of tokens of one segment.
struct PoolPiece {
  int32_t segment;
  int32_t begin;  // Rows of scores, values and `visible`.
  int32_t end;
};

// Scores of a kernels::PoolCall; PoolRows is its kernels::PoolValue.
struct PoolColumns {
  const float* scores;  // [T, columns], natural units.
  int64_t score_stride;
  int32_t columns;
  int32_t columns_per_head;
  const uint8_t* visible;  // [T]; null: all.
};

struct PoolRows {
  const void* data;  // [T, ...] of dtype, strides in elements.
  int64_t row_stride;
  int64_t head_stride;
  int32_t width;  // Channels that a column reads.
  DType dtype;
};

// Unfinished sums, one per (piece or segment, column): m the largest score (-inf: no token), s the
// sum of exp(score - m), sums those of exp(score - m) * value.
struct PoolSums {
  float* m;     // [n, columns]
  float* s;     // [n, columns]
  float* sums;  // [n, columns, width]
};

struct PoolPieces {
  PoolColumns columns;
  PoolRows rows;
  const PoolPiece* pieces;  // [count]
  int32_t count;
  PoolSums out;  // n = count
};

// out[segment] = the means of its pieces, pieces piece0[segment] .. piece0[segment + 1]. A segment
// without visible tokens gives zeros.
struct PoolMerge {
  PoolSums pieces;
  const int32_t* piece0;  // [segments + 1]
  int32_t segments;
  int32_t columns;
  int32_t width;
  float* out;  // [segments, columns, width]
};

// Rows of one open segment, and where its sums are kept: kernels::CarvePoolState of all columns and
// one width per value; the call may be about some of the columns.
struct PoolRun {
  float* state;
  int32_t begin;  // Rows of scores and values, any number of them.
  int32_t end;
  int32_t begins;   // 1: sums start from nothing, whatever the state holds.
  int32_t shifted;  // 1: `shift` floats are added to `state`.
};

// Appends rows to open segments: sums of one or two values with the same weights.
// REQUIRES: runs have different states.
struct PoolAppend {
  PoolColumns columns;
  PoolRows rows;
  const void* second;   // Another value, like `rows` but for its data; null: none.
  const PoolRun* runs;  // [count]
  int32_t count;
  int64_t shift;          // Floats from the states of the first layer to those of this one.
  int32_t state_columns;  // Columns of a whole state.
  int32_t column0;        // First column of the state that the call appends to.
};

struct PoolApi {
  Status (*pieces)(Stream* stream, const PoolPieces& args);
  Status (*merge)(Stream* stream, const PoolMerge& args);
  Status (*append)(Stream* stream, const PoolAppend& args);
};

}  // namespace longview::kernels::cuda
