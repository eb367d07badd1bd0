// Element types of dense layers. Plain data: included by files of any instruction set.
#pragma once

#include <cstdint>

namespace longview::models {

// Element type of dense inputs and outputs. Sums, norms and softmax are fp32 in all. kFp16 is for
// devices: no CPU computes in it.
enum class Compute { kFp32, kBf16, kFp16 };

inline constexpr int64_t ElementBytes(Compute compute) { return compute == Compute::kFp32 ? 4 : 2; }

// Name of the type in `--dtype` and ModelInfo::dtype.
inline constexpr const char* ComputeName(Compute compute) {
  switch (compute) {
    case Compute::kBf16:
      return "bf16";
    case Compute::kFp16:
      return "fp16";
    default:
      return "fp32";
  }
}

}  // namespace longview::models
