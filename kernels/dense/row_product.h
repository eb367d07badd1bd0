// Products of a few rows with a weight matrix, y = x . W^T, at the speed of memory: a decode step
// reads every weight once for a handful of rows. Libraries pad such a product to 16 rows, which
// costs more than reading (spans.md 6.3); for many rows they are faster.
//
// A row's bits depend on the row, the weights and the instruction set: one chain over the inputs
// per output, whatever the number of rows, its place and the threads. Arithmetic is float, also
// with bfloat16 weights, which are widened in registers.
//
// Stateless: thread-safe. All memory is the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/base/cpu_features.h"
#include "kernels/base/parallel.h"
#include "kernels/span/kv_layout.h"

namespace longview::kernels {

// A packed weight, borrowed: [out / 64][in][64] floats, or [out / 64][in / 2][64][2] bfloat16; the
// last 64 outputs are filled up with zeros. 64-byte aligned.
struct RowWeight {
  const std::byte* data = nullptr;
  DType dtype = DType::kFloat32;
  int64_t out = 0;
  int64_t in = 0;  // Even for bfloat16.
};

size_t RowWeightBytes(int64_t out, int64_t in, DType dtype);

inline constexpr int64_t kRowUnit = 64;  // Outputs that lie together.

// Outputs [first, last) of a weight as one of their own; first is a multiple of kRowUnit.
RowWeight RowWeightPart(const RowWeight& weight, int64_t first, int64_t last);

// Packs a row-major [out, in] weight; to bfloat16 rounds to nearest even.
void PackRowWeight(std::span<const float> weight, int64_t out, int64_t in, DType dtype,
                   std::byte* packed);

// y[r, o] = sum over i of x[r, i] * weight[o, i], for `rows` rows; strides in elements.
void MultiplyRows(const RowWeight& weight, const float* x, int64_t x_stride, int64_t rows, float* y,
                  int64_t y_stride, const ParallelFor& pool, Isa isa);

// Reference of MultiplyRows in double precision.
void MultiplyRowsRef(const RowWeight& weight, const float* x, int64_t x_stride, int64_t rows,
                     float* y, int64_t y_stride);

}  // namespace longview::kernels
