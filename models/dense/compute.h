// Element types of dense layers. Plain data: included by files of any instruction set.
#pragma once

#include <cstdint>

namespace longview::models {

// Element type of dense inputs and outputs. Sums, norms and softmax are fp32 in both.
enum class Compute { kFp32, kBf16 };

inline constexpr int64_t ElementBytes(Compute compute) { return compute == Compute::kFp32 ? 4 : 2; }

}  // namespace longview::models
