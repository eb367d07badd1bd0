// Which element type a model computes in on a CUDA device.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "models/dense/compute_choice.h"

namespace longview::models {

// As ChooseCompute: `auto` is bf16 where the directory names a 16-bit type, for every device
// multiplies it natively; models stored in fp16 are computed in bf16, with a note.
// INVALID_ARGUMENT: fp16 asked for by flag.
absl::StatusOr<ComputeChoice> ChooseDeviceCompute(const std::string& asked,
                                                  const std::string& serving,
                                                  const std::string& stored);

}  // namespace longview::models
