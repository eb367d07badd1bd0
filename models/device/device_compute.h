// Which element type a model computes in on a CUDA device.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "models/dense/compute_choice.h"

namespace longview::models {

// As ChooseCompute, but `auto` is the 16-bit type that the directory names, bf16 or fp16: every
// device multiplies both natively.
absl::StatusOr<ComputeChoice> ChooseDeviceCompute(const std::string& asked,
                                                  const std::string& serving,
                                                  const std::string& stored);

}  // namespace longview::models
