// Which element type a model computes in on this machine.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/dense/compute.h"

namespace longview::models {

struct ComputeChoice {
  Compute compute = Compute::kFp32;
  std::vector<std::string> notes;  // Why it is not what was asked for.
};

// `asked`: auto, fp32, bf16, fp16 (the --dtype flag). `auto` is bf16 where the CPU multiplies it
// natively and the directory says so: `serving` (longview.json), else a 16-bit `stored` dtype.
// bf16 that this machine cannot multiply becomes fp32 with a note. INVALID_ARGUMENT: fp16 asked
// for by flag, which CPUs do not serve.
absl::StatusOr<ComputeChoice> ChooseCompute(const std::string& asked, const std::string& serving,
                                            const std::string& stored);

}  // namespace longview::models
