// A family's row buffers as the attention executor reads them. "T" is an element of the compute
// type.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/span/executor.h"
#include "models/dense/compute.h"

namespace longview::models {

inline kernels::DType SpanType(Compute compute) {
  switch (compute) {
    case Compute::kBf16:
      return kernels::DType::kBFloat16;
    case Compute::kFp16:
      return kernels::DType::kFloat16;
    default:
      return kernels::DType::kFloat32;
  }
}

// `elements` of T behind `data`; null stays null, as buffers are while they are measured.
inline std::byte* Column(std::byte* data, int64_t elements, Compute compute) {
  return data == nullptr ? nullptr : data + elements * ElementBytes(compute);
}

// Keys and values of T in rows `row_stride` elements apart, heads side by side.
inline kernels::Source RowsSource(const void* k, const void* v, Compute compute, int64_t row_stride,
                                  int64_t head_dim) {
  kernels::Source source;
  source.k = k;
  source.v = v;
  source.dtype = SpanType(compute);
  source.k_row_stride = source.v_row_stride = row_stride;
  source.k_head_stride = source.v_head_stride = head_dim;
  return source;
}

}  // namespace longview::models
