// The rows that a batch's layers hand on, and how they move when sequences leave and when only the
// rows that heads read go on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/base/parallel.h"
#include "models/encoder/ragged_batch.h"
#include "models/layers/weight_loader.h"

namespace longview::models {

// Borrowed. "T" is an element of the compute type.
struct ResidualRows {
  float* x = nullptr;           // [rows, width]
  std::byte* beside = nullptr;  // T [rows, width] that go with them; null or x itself: none.
  int64_t width = 0;
  int64_t row_bytes = 0;  // Of T [width].

  // REQUIRES: to <= from.
  void Move(int64_t from, int64_t to, int64_t count = 1) const;
};

// Moves the wanted rows of all sequences to the front, in their order. Appends the first one of
// each sequence to `first`, and returns their number.
int64_t KeepWantedRows(const RaggedBatch& batch, const ResidualRows& rows,
                       std::vector<int64_t>& first);

// A model's last norm in place, in fp32 whatever the compute type: what heads read is not rounded.
void NormLastRows(const Norm& norm, float* x, int64_t rows, const kernels::ParallelFor& pool);

}  // namespace longview::models
