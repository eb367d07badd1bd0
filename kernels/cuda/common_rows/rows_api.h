// Row operations between two linears, on the device: biases, activations, copies, and the small
// products of Longformer's folded global rows. The device's
// counterpart of models/dense/rowwise.h, many rows at a time.
//
// A row's bits depend on that row alone: sums over columns have one fixed order, whatever the
// number of rows. Sums and norms are float; dtype is that of tensors marked T.
#pragma once

#include <cstdint>

#include "kernels/cuda/base/plugin_types.h"
#include "kernels/span/kv_layout.h"

namespace longview::kernels::cuda {

// The values of models::Activation, in its order.
enum class RowActivation : int32_t { kNone, kGelu, kGeluTanh, kRelu, kSilu, kTanh, kQuickGelu };

struct RowNorm {
  const float* gamma;  // [width]
  const float* beta;   // [width]
  float eps;
};

// y = activation(y + bias), in place.
struct BiasRows {
  void* y;            // T [rows, columns]
  const float* bias;  // [columns]
  int64_t rows;
  int32_t columns;
  RowActivation activation;
  DType dtype;
};

// out = y + bias, in float.
struct WidenRows {
  const void* y;      // T [rows, columns]
  const float* bias;  // [columns]
  float* out;         // [rows, columns]
  int64_t rows;
  int32_t columns;
  DType dtype;
};

// Row to[i] of `out` = row from[i] of `in`; a negative index leaves the row out. Null lists are
// 0, 1, ... REQUIRES: bytes and strides are multiples of 4; the tensors do not overlap.
struct CopyRows {
  const void* in;
  void* out;
  const int32_t* from;  // [rows]
  const int32_t* to;    // [rows]
  int64_t rows;
  int32_t row_bytes;
  int64_t in_stride;  // Bytes.
  int64_t out_stride;
};

// The sequences whose global rows are folded in one go: `count` global rows each, so
// count * heads columns; column c of a sequence is row c / heads, head c % heads.
struct FoldShape {
  int32_t sequences;
  int32_t count;
  int32_t heads;
  int32_t dim;    // Channels of a head.
  int32_t width;  // heads * dim
};

// vectors = scale * q Wk per head: [sequences, columns, width]
struct FoldKeys {
  FoldShape shape;
  const float* queries;  // [sequences * count, width]
  const float* weight;   // Wk [width, width], row a * dim + d
  float scale;
  float* vectors;
};

// scores[t, c] = x[t] . vectors[sequence of t, c], for rows begins[s] <= t < ends[s].
struct FoldScores {
  FoldShape shape;
  const float* x;         // [rows, width]
  const float* vectors;   // [sequences, columns, width]
  const int32_t* begins;  // [sequences] rows of x
  const int32_t* ends;
  int32_t longest;  // Rows of the longest sequence.
  float* scores;    // [rows, columns]
};

// out[out_rows[i], a * dim + d] = Wv[a * dim + d] . means[i, a] + bias[a * dim + d]
struct FoldValues {
  FoldShape shape;
  const float* means;       // [sequences, columns, width]
  const float* weight;      // Wv [width, width]
  const float* bias;        // [width]
  const int32_t* out_rows;  // [sequences * count]
  void* out;                // T [rows, width]
  DType dtype;
};

struct RowsApi {
  Status (*bias)(Stream* stream, const BiasRows& args);
  Status (*widen)(Stream* stream, const WidenRows& args);
  Status (*copy)(Stream* stream, const CopyRows& args);
  Status (*fold_keys)(Stream* stream, const FoldKeys& args);
  Status (*fold_scores)(Stream* stream, const FoldScores& args);
  Status (*fold_values)(Stream* stream, const FoldValues& args);
};

}  // namespace longview::kernels::cuda
