// Slices of documents among the rows of a batch.
#pragma once

#include <cstdint>

namespace longview::kernels {

struct SliceRows {
  int32_t row0;
  int32_t rows;
  int32_t visible;  // Number of rows that are not masked.
};

// Rows of one slice that a pass brings: a whole slice, or a part of it.
struct SlicePart {
  int32_t row0;
  int32_t rows;
  int32_t begins;   // 0: the slice has earlier rows, whose sums are gone on with.
  int32_t divisor;  // Divides the sums behind this part; 0: the slice stays open, they remain sums.
};

// A row of a pass, and where it lies in the state of its sequence in the first layer.
struct StateRow {
  float* state;
  int32_t row;
};

}  // namespace longview::kernels
