// Operations of text encoders on a device between products and attention, beside common_rows/:
// embeddings without a norm, residuals of pre-norm layers, biases of a row's place, landmarks of
// long-short attention, the slices of the Composite Slice Transformer.
//
// A row's bits depend on what it is made of, never on the number of rows. Sums and norms are float;
// dtype is that of tensors marked T.
#pragma once

#include <cstdint>

#include "kernels/cuda/base/plugin_types.h"
#include "kernels/cuda/common_rows/rows_api.h"
#include "kernels/pool/slice_rows.h"
#include "kernels/span/kv_layout.h"

namespace longview::kernels::cuda {

// x = factor * words[ids] + positions[places] + types[kinds].
struct EmbedSums {
  const float* words;      // [vocabulary, width]
  const float* positions;  // [positions, width]; null: none.
  const float* types;      // [types, width]; null: none.
  const int32_t* ids;      // [rows]
  const int32_t* places;   // [rows]
  const int32_t* kinds;    // [rows]
  float factor;
  float* x;  // [rows, width]
  int64_t rows;
  int32_t width;
};

// x = x + y + bias, then out = LayerNorm(x), which is not x.
struct PrenormRows {
  float* x;           // [rows, width]
  const void* y;      // T [rows, width]; null: none.
  const float* bias;  // [width]; null: none.
  RowNorm norm;
  void* out;  // T [rows, width]
  int64_t rows;
  int32_t width;
  DType dtype;
};

// y = activation(y + bias) * (gates + gate_bias), in place.
struct GatedRows {
  void* y;                 // T [rows, columns]
  const float* bias;       // [columns]
  const void* gates;       // T [rows, columns]
  const float* gate_bias;  // [columns]
  int64_t rows;
  int32_t columns;
  RowActivation activation;
  DType dtype;
};

// y = y + bias, in place, where the first `rotated` columns are vectors of `dim` whose halves are
// turned against each other: (a cos - b sin, b cos + a sin).
struct RotatedRows {
  void* y;                // T [rows, columns]
  const float* bias;      // [columns]
  const float* angles;    // [places, dim]: dim / 2 cosines, then dim / 2 sines.
  const int32_t* places;  // [rows]
  int64_t rows;
  int32_t columns;
  int32_t rotated;
  int32_t dim;
  DType dtype;
};

// y = y + bias[entries[row]], in place; a row without an entry becomes zeros.
struct PlaceBiases {
  void* y;                 // T [rows, columns]
  const float* bias;       // [entries, columns]
  const int32_t* entries;  // [rows]; negative: none.
  int64_t rows;
  int32_t columns;
  DType dtype;
};

// out = in + added[index[row]]; a row without an index stays as it is. `out` may be `in`.
struct AddedRows {
  const void* in;        // T [rows, width]
  const void* added;     // T [n, width]
  const int32_t* index;  // [rows]; negative: none.
  void* out;             // T [rows, width]
  int64_t rows;
  int32_t width;
  DType dtype;
};

// Projected rows of sequences, [keys | values]: landmark k of all heads side by side, then
// LayerNorm. A sequence's own row, where there is one, comes before its landmarks.
struct LandmarkRows {
  const float* keys;       // [sequences, heads * rank, dim]
  const float* values;     // [sequences, heads * rank, dim]
  const void* own_keys;    // T [sequences, heads * dim]; null: no own rows.
  const void* own_values;  // T [sequences, heads * dim]; null with own_keys.
  int64_t own_stride;      // Elements.
  RowNorm norm;            // [heads * dim]; gamma null: none.
  void* out;               // T [sequences * landmarks, 2 * heads * dim]
  int32_t sequences;
  int32_t rank;
  int32_t heads;
  int32_t dim;
  DType dtype;
};

// Means or largest values of the visible rows of slices, channel by channel, in the order of the
// rows; a slice without any gives zeros. See kernels/pool/slice_pool.h.
struct PoolSlices {
  const void* rows;         // T [rows, width]
  const uint8_t* visible;   // [rows]
  const SliceRows* slices;  // [count]
  int32_t count;
  int32_t width;
  int32_t largest;  // 1: largest values.
  void* out;        // T [count, width]
  DType dtype;
};

// PoolSlices of parts of slices, in float: sums[i] continues from what it holds unless part i
// begins its slice.
struct PoolParts {
  const void* rows;        // T [rows, width]
  const SlicePart* parts;  // [count]
  int32_t count;
  int32_t width;
  int32_t largest;  // 1: largest values.
  float* sums;      // [count, width]
  DType dtype;
};

// A linear over the places of a slice, the same for every channel: kernels/pool/place_mix.h.
struct PlaceWeights {
  const float* weights;  // [in, out]
  const float* bias;     // [out]
};

// Rows of slices through two of them with a gelu between; masked and absent rows read as zeros.
// Two steps, MixIn and MixOut, with the same arguments.
struct MixSlices {
  const void* rows;        // T [rows, width]
  const uint8_t* visible;  // [rows]
  const SliceRows* slices;
  int32_t count;
  int32_t width;
  int32_t places;      // In a whole slice.
  int32_t mixed;       // Places between the linears.
  PlaceWeights first;  // [places, mixed]
  PlaceWeights second;
  float* between;  // [count, mixed, width]
  void* out;       // T [rows, width]; may be `rows`.
  DType dtype;
};

struct EncoderApi {
  Status (*embed)(Stream* stream, const EmbedSums& args);
  Status (*prenorm)(Stream* stream, const PrenormRows& args);
  Status (*gate)(Stream* stream, const GatedRows& args);
  Status (*rotate)(Stream* stream, const RotatedRows& args);
  Status (*place_bias)(Stream* stream, const PlaceBiases& args);
  Status (*add)(Stream* stream, const AddedRows& args);
  Status (*landmarks)(Stream* stream, const LandmarkRows& args);
  Status (*pool_slices)(Stream* stream, const PoolSlices& args);
  Status (*pool_parts)(Stream* stream, const PoolParts& args);
  Status (*mix_in)(Stream* stream, const MixSlices& args);
  Status (*mix_out)(Stream* stream, const MixSlices& args);
};

}  // namespace longview::kernels::cuda
