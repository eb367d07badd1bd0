// A slice of a document among the rows of a batch.
#pragma once

#include <cstdint>

namespace longview::kernels {

struct SliceRows {
  int32_t row0;
  int32_t rows;
  int32_t visible;  // Those that are not masked.
};

}  // namespace longview::kernels
