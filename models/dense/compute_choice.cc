#include "models/dense/compute_choice.h"

#include "absl/strings/str_cat.h"
#include "kernels/base/cpu_features.h"
#include "models/dense/linear.h"

namespace longview::models {
namespace {

// Packs and multiplies a small matrix.
absl::Status TryBf16() {
  constexpr int kSize = 32;
  const std::vector<float> weight(kSize * kSize, 1.0f);
  PanelRules rules;
  return Linear::Pack("bf16 trial", weight, kSize, kSize, Compute::kBf16, rules).status();
}

}  // namespace

absl::StatusOr<ComputeChoice> ChooseCompute(const std::string& asked, const std::string& serving,
                                            const std::string& stored) {
  ComputeChoice choice;
  if (asked == "fp32") return choice;
  if (asked == "fp16") {
    return absl::InvalidArgumentError("dtype: fp16 is not served on a CPU; use fp32 or bf16");
  }
  if (asked != "auto" && asked != "bf16") {
    return absl::InvalidArgumentError(
        absl::StrCat("dtype: \"", asked.substr(0, 64), "\" is not one of auto, fp32, bf16, fp16"));
  }
  if (asked == "auto") {
    const bool says_so = serving.empty() ? stored == "bfloat16" || stored == "float16"
                                         : serving == "bf16" || serving == "fp16";
    if (!says_so) return choice;
    if (!kernels::Bf16IsNative()) {
      choice.notes.push_back("stored in 16 bits, computed in fp32: bf16 is no faster on this CPU");
      return choice;
    }
  }
  if (absl::Status status = TryBf16(); !status.ok()) {
    choice.notes.push_back("bf16 is not available on this CPU, computing in fp32: " +
                           std::string(status.message()));
    return choice;
  }
  choice.compute = Compute::kBf16;
  return choice;
}

}  // namespace longview::models
