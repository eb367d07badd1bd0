// Element types that models compute in on this machine's CPU: not every one multiplies bf16.
#pragma once

#include <string>
#include <vector>

#include "models/dense/compute_choice.h"

namespace longview::models {

// Whether a model that is asked for it computes in it, and not in another with a note.
inline bool CpuComputesIn(const std::string& dtype) {
  const absl::StatusOr<ComputeChoice> choice = ChooseCompute(dtype, "", "");
  return choice.ok() && dtype == ChosenTypeName(*choice);
}

inline std::vector<std::string> CpuTypeNames() {
  if (CpuComputesIn("bf16")) return {"fp32", "bf16"};
  return {"fp32"};
}

inline std::vector<Compute> CpuTypes() {
  if (CpuComputesIn("bf16")) return {Compute::kFp32, Compute::kBf16};
  return {Compute::kFp32};
}

}  // namespace longview::models
