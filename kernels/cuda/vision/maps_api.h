// Work on feature maps between two products on the device: patches of pixels and of maps as
// rows, tokens put into their places, biases of a map, keys summed over
// positions, maps as planes.
//
// A map is some rows of a ragged batch; which row a token has is said by lists. A row's bits depend
// on that row, or on the map it belongs to, alone. Sums and norms are float; dtype is that of
// tensors marked T.
#pragma once

#include <cstdint>

#include "kernels/cuda/base/plugin_types.h"
#include "kernels/cuda/common_rows/rows_api.h"
#include "kernels/span/kv_layout.h"

namespace longview::kernels::cuda {

// One picture of a batch and the patches of it, row by row; what is left over at its right and
// lower border belongs to none.
struct PixelImage {
  int64_t pixel0;  // First pixel of its planes, [channels, height, width].
  int64_t patch0;  // First patch of the picture.
  int32_t height;
  int32_t width;
  int32_t rows;  // Rows of patches.
  int32_t columns;
};

struct PixelPatches {
  const float* pixels;
  const PixelImage* images;  // [count]
  int32_t count;
  int64_t most;  // Patches of the largest image.
  int32_t channels;
  int32_t side;
  int32_t stride;   // From patch to patch.
  int32_t padding;  // Zeros around the picture, at its left and upper border.
  int32_t columns;  // Elements of a row of `out`, channels * side * side or more.
  void* out;        // T [patches, columns]: channel, row, column, then zeros.
  DType dtype;
};

// Row i of `out` = row from[i] of x in T; zeros for a negative index. The taps of a convolution:
// `from` has those of one place side by side.
struct MapTaps {
  const float* x;
  const int32_t* from;  // [rows]
  void* out;            // T [rows, width]
  int64_t rows;
  int32_t width;
  DType dtype;
};

// A depthwise convolution of 3 x 3 taps: row i of `out` = bias + the sum over t of taps[t] * row
// from[i, t] of x, channel by channel; negative rows are left out. Where from[i, 0] is kAsItIs, it
// is row from[i, 4] of x.
struct DepthwiseRows {
  static constexpr int kTaps = 9;
  static constexpr int32_t kAsItIs = -2;

  const void* x;        // T [.., width]
  const int32_t* from;  // [rows, kTaps]
  const float* taps;    // [kTaps, width]
  const float* bias;    // [width]
  void* out;            // T [rows, width], another tensor.
  int64_t rows;
  int32_t width;
  DType dtype;
};

// x[rows[i]] = LayerNorm(y[i] + bias) + the positions of its map row and, behind them, of its map
// column.
struct MapTokens {
  const void* y;               // T [tokens, width]
  const float* bias;           // [width]
  RowNorm norm;                // gamma null: none.
  const int32_t* rows;         // [tokens]
  const float* down;           // [.., width / 2]; null: no positions.
  const float* across;         // [.., width / 2]
  const int32_t* down_rows;    // [tokens]
  const int32_t* across_rows;  // [tokens]
  float* x;                    // [.., width]
  int64_t tokens;
  int32_t width;
  DType dtype;
};

// out[h, i] = learned[h, entries[i]]: a learned table as a plan of one map size reads it.
struct BiasTable {
  const float* learned;  // [heads, learned_entries]
  int64_t learned_entries;
  const int32_t* entries;  // [count]
  int64_t count;
  int32_t heads;
  float* out;
  int64_t out_stride;  // Floats from head to head.
};

// out[image * columns + j] = the sum over an image's rows, in order, of weight[n, j] * row n.
struct PositionSums {
  const void* rows;  // T [.., width], row_stride elements apart.
  int64_t row_stride;
  const float* weight;    // [tokens, columns]
  const int32_t* begins;  // [images] first rows.
  int32_t images;
  int32_t tokens;  // Per image.
  int32_t columns;
  int32_t width;
  void* out;  // T [images * columns, width], out_stride elements apart.
  int64_t out_stride;
  DType dtype;
};

// Instance norm: every column over the rows of its image, without weights. Image i has rows
// begins[i] to begins[i + 1] of `in` and as many of `out` from out_begins[i] on.
struct ColumnNorms {
  const void* in;             // T [.., width]
  const int32_t* begins;      // [images + 1]
  const int32_t* out_begins;  // [images]
  int32_t images;
  int32_t width;
  float eps;
  void* out;  // T [.., width], another tensor.
  DType dtype;
};

// One map and where its planes go.
struct PlaneImage {
  int64_t token0;  // Among `rows`.
  int64_t out0;    // Floats of `out`.
  int64_t tokens;
};

// out = [width, tokens] of every image, token by token in the order of `rows`.
struct MapPlanes {
  const float* x;            // [.., width]
  const int32_t* rows;       // [tokens of all images]
  const PlaneImage* images;  // [count]
  int32_t count;
  int64_t most;  // Tokens of the largest image.
  int32_t width;
  float* out;
};

struct MapsApi {
  Status (*patches)(Stream* stream, const PixelPatches& args);
  Status (*taps)(Stream* stream, const MapTaps& args);
  Status (*depthwise)(Stream* stream, const DepthwiseRows& args);
  Status (*tokens)(Stream* stream, const MapTokens& args);
  Status (*bias_table)(Stream* stream, const BiasTable& args);
  Status (*position_sums)(Stream* stream, const PositionSums& args);
  Status (*column_norms)(Stream* stream, const ColumnNorms& args);
  Status (*planes)(Stream* stream, const MapPlanes& args);
};

}  // namespace longview::kernels::cuda
