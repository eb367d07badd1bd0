// The work of a generating model's pass on a device between products and attention, and the
// products of its few decoding rows: norms of keys and values, writes into the cache, means of
// segments, scores of positions.
//
// A row's bits depend on that row alone. Sums and norms are float; dtype is that of tensors marked
// T. The cache's blocks are [block][head][64][pitch], pitch = BlockPitch(D) (span/span_call.h).
#pragma once

#include <cstdint>

#include "kernels/cuda/base/plugin_types.h"
#include "kernels/cuda/common_rows/rows_api.h"
#include "kernels/cuda/pool/pool_api.h"
#include "kernels/pool/slice_rows.h"
#include "kernels/span/kv_layout.h"

namespace longview::kernels::cuda {

// x = x + y + bias, then LayerNorm; copy = x in T.
struct StreamRows {
  float* x;           // [rows, width]
  const void* y;      // T [rows, width]; null: none.
  const float* bias;  // [width]; null: none.
  RowNorm norm;       // gamma null: none.
  void* copy;         // T [rows, width]; null: none.
  int64_t rows;
  int32_t width;
  DType dtype;
};

// A row is query, key, value and scores side by side. Adds their biases in place, scores to
// `scores` instead; keys and values normed go to `keys` and `values`.
struct ProjectedRows {
  void* y;            // T [rows, 3 * width + columns]
  const float* bias;  // [3 * width + columns]
  RowNorm norm;       // Dual LN of the window, Zhu et al. 2021, section 3.2.
  void* keys;         // T [rows, width]
  void* values;       // T [rows, width]
  float* scores;      // [rows, columns]
  int64_t rows;
  int32_t width;
  int32_t columns;
  DType dtype;
};

// One layer's part of a cache.
struct CacheRows {
  void* k;  // T
  void* v;  // T
  int32_t heads;
  int32_t dim;    // Channels of a head, for keys and values alike.
  int32_t pitch;  // BlockPitch(dim)
};

// A row's place there; block -1: nowhere. `block` counts as a block table's ids do.
struct CacheRowPlace {
  int32_t block;
  int32_t slot;
};

// Row i of keys and values to places[i].
struct StoreRows {
  const void* keys;    // T [rows, heads * dim], row_stride elements apart.
  const void* values;  // T [rows, heads * dim], row_stride elements apart.
  int64_t row_stride;
  const CacheRowPlace* places;
  CacheRows cache;
  int64_t rows;
  DType dtype;
};

// Row i from the keys at places[i]; left as it is where there is no place.
struct LoadRows {
  void* keys;  // T [rows, heads * dim], row_stride elements apart.
  int64_t row_stride;
  const CacheRowPlace* places;
  CacheRows cache;
  int64_t rows;
  DType dtype;
};

// Rows from the states of sequences, or to them: row list[i].row of `rows` lies at list[i].state +
// shift there, in float.
struct StateRows {
  const StateRow* list;  // [count]
  int64_t shift;
  void* rows;  // T [rows, width], row_stride elements apart.
  int64_t row_stride;
  int64_t count;
  int32_t width;
  int32_t stores;  // 1: to the states.
  DType dtype;
};

// Scores of words, and of tails behind them, to log-probabilities of words: an adaptive softmax
// (models/ops/deliver.h), summed in double.
struct AdaptiveRows {
  const float* scores;     // [rows, words + tails]
  const int32_t* cutoffs;  // [tails] first words, rising.
  float* out;              // [rows, words]
  int64_t rows;
  int32_t words;
  int32_t tails;  // At least 1.
};

// Sums of segments: column0 + head * rank + k of a state is rank k of a head.
struct SegmentSums {
  const PoolRun* runs;    // [segments], with values of the width of a head.
  int64_t shift;          // Floats added to `state`, see PoolAppend::shift.
  int32_t state_columns;  // Columns of a whole state, see PoolAppend.
  int32_t column0;
  int32_t segments;
  int32_t rank;
};

// Projected rows of segments: means of two values' sums, rank k of all heads side by side, then
// LayerNorm, to places[segment * rank + k]; nowhere for those that go on.
struct PageRows {
  SegmentSums sums;
  const CacheRowPlace* places;
  CacheRows cache;
  RowNorm norm;  // [heads * dim]
  DType dtype;
};

// The other order, which the published code calls for in memory: row segment * rank + k is the mean
// of one value, rank k of all heads side by side, for a linear to project (LinearPages).
struct SegmentMeans {
  SegmentSums sums;
  const CacheRowPlace* places;  // Block -1: the row is left as it is.
  void* out;                    // T [segments * rank, heads * dim]
  int32_t heads;
  int32_t dim;
  DType dtype;
};

// Products of the linear that SegmentMeans' rows went through, key and value side by side: each row
// gets its bias and LayerNorm on the way to places[row].
struct LinearPages {
  const void* y;  // T [rows, 2 * heads * dim], row_stride elements apart.
  int64_t row_stride;
  const float* bias;  // [2 * heads * dim]
  const CacheRowPlace* places;
  CacheRows cache;
  RowNorm norm;  // [heads * dim]
  int32_t rows;
  DType dtype;
};

// y = x W^T for few rows, each weight read once for eight of them: what a decode step multiplies
// by.
struct RowProducts {
  const void* x;       // T [rows, in]
  const void* weight;  // T [out, in]
  void* y;             // T [rows, out]
  int64_t rows;
  int64_t in;
  int64_t out;
  DType dtype;
};

// scores[head * head_stride + row * row_stride + i] = scale * (q + add) . table[head, i], for the
// first limits[row] entries.
struct PositionScores {
  const void* q;  // T [rows, heads * dim], q_stride elements apart.
  int64_t q_stride;
  const float* add;       // [heads * dim]; null: none.
  const void* table;      // T [heads, table_entries, dim]
  int64_t table_entries;  // Per head.
  const int32_t* limits;  // [rows]
  int32_t most;           // Largest limit.
  int64_t head_stride;
  int64_t row_stride;
  float* scores;
  int32_t rows;
  int32_t heads;
  int32_t dim;  // Up to kMaxHeadDim.
  float scale;
  DType dtype;
};

struct TokenApi {
  Status (*stream)(Stream* stream, const StreamRows& args);
  Status (*project)(Stream* stream, const ProjectedRows& args);
  Status (*store)(Stream* stream, const StoreRows& args);
  Status (*load)(Stream* stream, const LoadRows& args);
  Status (*states)(Stream* stream, const StateRows& args);
  Status (*adaptive)(Stream* stream, const AdaptiveRows& args);
  Status (*pages)(Stream* stream, const PageRows& args);
  Status (*means)(Stream* stream, const SegmentMeans& args);
  Status (*linear_pages)(Stream* stream, const LinearPages& args);
  Status (*product)(Stream* stream, const RowProducts& args);
  Status (*positions)(Stream* stream, const PositionScores& args);
};

}  // namespace longview::kernels::cuda
