// A linear whose products are int8: y = x W^T with activations quantised per row as they come, and
// weights per output once. Half the memory of a 16-bit weight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/dense/int8_product.h"
#include "models/dense/compute.h"
#include "models/dense/scratch.h"

namespace longview::models {

// Immutable: thread-safe. A row's bits depend on that row alone, for any number of rows.
class Int8Linear {
 public:
  // `weight` is row-major [out, in] and may go. `kernels` outlive the linear.
  Int8Linear(std::span<const float> weight, int64_t out, int64_t in,
             const kernels::Int8Kernels& kernels);

  int64_t bytes() const { return static_cast<int64_t>(memory_.bytes()); }

  // Bytes of Multiply's scratch: the quantised rows.
  size_t ScratchBytes(int64_t rows) const;
  // A row's share of it.
  int64_t QuantizedRowBytes() const { return row_bytes() + static_cast<int64_t>(sizeof(float)); }

  // y [rows, out] = x [rows, in] W^T, both of `compute`: fp32 or bf16.
  void Multiply(const void* x, int64_t rows, Compute compute, std::byte* scratch, void* y,
                const kernels::ParallelFor& pool) const;

 private:
  struct Quantized {
    float* scales = nullptr;    // [rows]
    std::byte* rows = nullptr;  // [rows, columns]
  };
  Quantized Carve(int64_t rows, Carver& carver) const;
  int64_t row_bytes() const { return kernels::Int8Columns(in_) * kernels_->element_bytes; }
  void MultiplyTile(const Quantized& x, int64_t unit, int64_t first, int64_t rows, Compute compute,
                    std::byte* y) const;

  const int64_t out_, in_;
  const kernels::Int8Kernels* const kernels_;
  Scratch memory_;                // The packed weight, in huge pages.
  std::vector<float> scales_;     // [out]
  std::vector<int32_t> offsets_;  // [out] what shifted activations add to every sum.
};

}  // namespace longview::models
