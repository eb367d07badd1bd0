// Stored weights as fp32. Exact for fp16 and bf16, whose values are all fp32 values; an fp64 value
// becomes the nearest fp32 value.
// Thread-safe: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/checkpoint/checkpoint.h"

namespace longview::models {

// Whether the functions below take the type: F64, F32, F16, BF16.
bool IsFloatWeight(DType dtype);

// Elements [first, first + out.size()) of the tensor in row-major order, at any alignment.
// REQUIRES: IsFloatWeight(tensor.dtype) and the range lies in the tensor.
void CopyFloat32(const TensorView& tensor, int64_t first, std::span<float> out);

// The whole tensor. REQUIRES: IsFloatWeight(tensor.dtype).
std::vector<float> ToFloat32(const TensorView& tensor);

// Elements [first, first + out.size()) of the tensor, read by TensorView::Read. Its errors, and
// INVALID_ARGUMENT naming the tensor and the element if one is NaN or infinite. REQUIRES: as
// CopyFloat32.
absl::Status ReadFloat32(const TensorView& tensor, int64_t first, std::span<float> out);

// INVALID_ARGUMENT as ReadFloat32, over the whole tensor where it lies in memory.
absl::Status CheckFinite(const TensorView& tensor);

}  // namespace longview::models
