#include "models/device/device_compute.h"

#include "absl/strings/str_cat.h"

namespace longview::models {

absl::StatusOr<ComputeChoice> ChooseDeviceCompute(const std::string& asked,
                                                  const std::string& serving,
                                                  const std::string& stored) {
  ComputeChoice choice;
  if (asked == "fp32") return choice;
  if (asked == "fp16") {
    return absl::InvalidArgumentError(
        "dtype: fp16 is not served by this family on CUDA; use bf16 or fp32");
  }
  if (asked != "auto" && asked != "bf16") {
    return absl::InvalidArgumentError(
        absl::StrCat("dtype: \"", asked.substr(0, 64), "\" is not one of auto, fp32, bf16, fp16"));
  }
  const std::string& said = serving.empty() ? stored : serving;
  const bool fp16 = said == "float16" || said == "fp16";
  if (asked == "auto" && !fp16 && said != "bfloat16" && said != "bf16") return choice;
  if (asked == "auto" && fp16) choice.notes.push_back("stored in fp16, computed in bf16");
  choice.compute = Compute::kBf16;
  return choice;
}

}  // namespace longview::models
