// Luna's causal sums on the device: kernels/linear_attention/running_outer.h, the same state and
// packed rows (OuterStateFloats, PackOuterRows).
//
// A block is one head of one sequence and takes its tokens in order, so a token's bits depend on
// its sequence alone, however it is cut into calls.
#pragma once

#include <cstdint>

#include "kernels/cuda/base/plugin_types.h"
#include "kernels/linear_attention/running_outer.h"

namespace longview::kernels::cuda {

inline constexpr int kMostOuterRows = 256;  // Limit of P's rows and of a head's channels.

// kernels::OuterSequence with pointers into device memory.
struct DeviceOuterSequence {
  int64_t row0;
  int64_t tokens;
  int64_t before;
  int32_t rows;
  const float* packed;
  float* state;  // Undefined where `before` is 0.
};

// kernels::OuterCall on the device. REQUIRES: rows and width up to kMostOuterRows.
struct AppendOuterRows {
  const float* q;  // [T, heads, width]
  const float* k;
  const float* v;
  const float* g;
  int64_t row_stride;
  float* out;  // [T, heads, width]
  int64_t out_stride;
  int32_t heads;
  int32_t width;
  float scale;
  OuterActivation activation;
  const DeviceOuterSequence* sequences;  // [count]
  int32_t count;
};

// packed[c][lane] = row `lane` of column c, zeros in the lanes behind the last: as
// kernels::PackOuterRows.
struct PackedOuterRows {
  const float* projected;  // [rows, width], all heads.
  float* packed;           // [width, rows up to 16]
  int32_t rows;
  int32_t width;
};

struct OuterApi {
  Status (*append)(Stream* stream, const AppendOuterRows& args);
  Status (*pack)(Stream* stream, const PackedOuterRows& args);
};

}  // namespace longview::kernels::cuda
