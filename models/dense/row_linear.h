// A linear for a few rows: y = x . W^T where reading the weight takes longer than multiplying, as
// in a step of decoding. Linear pads such a product to 16 rows. A second pack of the weight beside
// that of Linear; the two agree within rounding, not in bits, so a phase of a model uses one.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/base/parallel.h"
#include "kernels/dense/row_product.h"
#include "models/dense/compute.h"
#include "models/dense/scratch.h"

namespace longview::models {

// Immutable: thread-safe. A row's bits depend on that row alone, whatever the number of rows.
class RowLinear {
 public:
  // Rows of one product: more read the weight again.
  static constexpr int64_t kRows = 64;

  // Is it faster than Linear for a few rows here? Where a CPU multiplies 16 rows by AMX, Linear
  // already waits for memory.
  static bool Pays(Compute compute);

  static size_t PackBytes(int64_t out, int64_t in, Compute compute);

  // `weight` is row-major [out, in]; packed in the compute type into `memory`, which is borrowed:
  // PackBytes of it, 64-byte aligned.
  RowLinear(std::span<const float> weight, int64_t out, int64_t in, Compute compute,
            std::byte* memory);

  // Scratch for products of up to kRows rows.
  static size_t ScratchBytes(int64_t out, int64_t in, Compute compute);

  // x [rows, in] and the result [rows, out] are of the compute type; the result lies in `scratch`.
  // REQUIRES: rows <= kRows; x is not in `scratch`.
  std::byte* Multiply(const std::byte* x, int64_t rows, std::byte* scratch,
                      const kernels::ParallelFor& pool) const;

 private:
  kernels::RowWeight weight_;
  Compute compute_;
};

}  // namespace longview::models
