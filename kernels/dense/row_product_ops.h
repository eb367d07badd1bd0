// An instruction set's part of a row product: the 64 outputs of one packed unit. Internal to
// kernels/dense. Plain data only: the files behind it have their own compiler flags.
#pragma once

#include <cstdint>

namespace longview::kernels {

inline constexpr int kUnitOutputs = 64;

struct RowUnit {
  const void* weights = nullptr;  // [in][64] floats or [in / 2][64][2] bfloat16.
  int64_t in = 0;
  const float* x = nullptr;
  int64_t x_stride = 0;
  int64_t rows = 0;
  float* y = nullptr;  // First output of the unit.
  int64_t y_stride = 0;
  int outputs = 0;  // Number of outputs that exist, 1 .. 64.
};

struct RowProductOps {
  void (*floats)(const RowUnit& unit) = nullptr;
  void (*bfloat16)(const RowUnit& unit) = nullptr;
};

extern const RowProductOps kAvx2RowProduct;
extern const RowProductOps kAvx512RowProduct;

}  // namespace longview::kernels
