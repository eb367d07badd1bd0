#include "models/device/device_compute.h"

#include "absl/strings/str_cat.h"

namespace longview::models {

absl::StatusOr<ComputeChoice> ChooseDeviceCompute(const std::string& asked,
                                                  const std::string& serving,
                                                  const std::string& stored) {
  if (asked != "auto" && asked != "fp32" && asked != "bf16" && asked != "fp16") {
    return absl::InvalidArgumentError(
        absl::StrCat("dtype: \"", asked.substr(0, 64), "\" is not one of auto, fp32, bf16, fp16"));
  }
  const std::string& said = asked != "auto" ? asked : !serving.empty() ? serving : stored;
  ComputeChoice choice;
  if (said == "bf16" || said == "bfloat16") choice.compute = Compute::kBf16;
  if (said == "fp16" || said == "float16") choice.compute = Compute::kFp16;
  choice.why = asked != "auto"    ? "--dtype says so"
               : !serving.empty() ? "longview.json says " + serving
               : !stored.empty()  ? "config.json says " + stored
                                  : "config.json names no type";
  return choice;
}

}  // namespace longview::models
