// Rows of the compute type as fp32, exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "models/dense/compute.h"
#include "models/ops/rows.h"

namespace longview::models {

inline float WidenedElement(const std::byte* data, int64_t index, Compute compute) {
  if (compute == Compute::kFp32) return reinterpret_cast<const float*>(data)[index];
  const uint32_t bits = uint32_t{reinterpret_cast<const uint16_t*>(data)[index]} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// `count` rows from `first` on, [count, width].
inline std::vector<float> WidenedRows(const Rows& rows, int64_t first, int64_t count,
                                      Compute compute) {
  std::vector<float> out(static_cast<size_t>(count * rows.width));
  for (int64_t r = 0; r < count; ++r) {
    for (int64_t c = 0; c < rows.width; ++c) {
      out[r * rows.width + c] = WidenedElement(rows.data, (first + r) * rows.stride + c, compute);
    }
  }
  return out;
}

}  // namespace longview::models
