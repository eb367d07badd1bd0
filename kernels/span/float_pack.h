// Packs rows into float panels. Included by instruction set files after their simd header.
#pragma once

#include "kernels/span/vector_ops.h"

namespace longview::kernels {
namespace {

// Columns [d, d + 16) of one row as floats; columns from `size` on and row -1 are zeros.
inline V16 LoadColumns(const void* data, bool bfloat16, int64_t row, int64_t stride, int d,
                       int size) {
  if (row < 0 || d >= size) return Zero();
  const int64_t at = row * stride + d;
  // The next head of the row usually follows and is packed next. Into the second level: the
  // first has too few lines in flight to stream from memory.
  const size_t next = (at + size) * (bfloat16 ? 2 : 4);
  __builtin_prefetch(static_cast<const std::byte*>(data) + next, 0, 2);
  return bfloat16 ? LoadFirstBf16(static_cast<const uint16_t*>(data) + at, size - d)
                  : LoadFirst(static_cast<const float*>(data) + at, size - d);
}

// K panels of floats.
inline void PackFloatKeys(const PackWork& work) {
  float* k = reinterpret_cast<float*>(work.k_block);
  for (int key = 0; key < kBlockKeys; key += 16) {
    float* panel = k + key * work.padded_dk;
    for (int d = 0; d < work.padded_dk; d += 16) {
      V16 tile[16];
      for (int i = 0; i < 16; ++i) {
        tile[i] = LoadColumns(work.k, work.from_bfloat16, work.rows[key + i], work.k_row_stride, d,
                              work.dk);
      }
      Transpose(tile);
      for (int i = 0; i < 16; ++i) Store(panel + (d + i) * 16, tile[i]);
    }
  }
}

inline void PackFloat(const PackWork& work) {
  PackFloatKeys(work);
  float* v = reinterpret_cast<float*>(work.v_block);
  for (int key = 0; key < kBlockKeys; ++key) {
    for (int d = 0; d < work.padded_dv; d += 16) {
      Store(v + key * work.padded_dv + d,
            LoadColumns(work.v, work.from_bfloat16, work.rows[key], work.v_row_stride, d, work.dv));
    }
  }
}

}  // namespace
}  // namespace longview::kernels
