// Choice of the element type that a model computes in on this machine.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/dense/compute.h"

namespace longview::models {

struct ComputeChoice {
  Compute compute = Compute::kFp32;
  bool int8 = false;                    // Linears are int8; all else is of `compute`.
  std::string why = "";                 // "config.json says bfloat16"
  std::vector<std::string> notes = {};  // Differences from the type that was asked for or stored.
};

// `asked`: auto, fp32, bf16, fp16, int8 (the --dtype flag). `auto` is bf16 where the CPU multiplies
// it natively and the directory says so: `serving` (longview.json), else a bfloat16 `stored` dtype.
// fp16 of a directory is computed in fp32, which holds all of its values, and so is bf16 that this
// machine cannot multiply, both with a note. int8 is beside bf16 where the CPU multiplies that
// natively, else beside fp32. INVALID_ARGUMENT: fp16 asked for by flag, which CPUs do not serve, or
// int8, where the CPU would be slower by it (below AVX2).
absl::StatusOr<ComputeChoice> ChooseCompute(const std::string& asked, const std::string& serving,
                                            const std::string& stored);

// Name of the choice in ModelInfo::dtype.
const char* ChosenTypeName(const ComputeChoice& choice);

// ChooseCompute on a CUDA device, where `auto` is the 16-bit type that the directory names, bf16 or
// fp16: every device multiplies both natively. int8 is the CPU's: INVALID_ARGUMENT by flag, and
// with a note the stored type where longview.json says so.
absl::StatusOr<ComputeChoice> ChooseDeviceCompute(const std::string& asked,
                                                  const std::string& serving,
                                                  const std::string& stored);

}  // namespace longview::models
