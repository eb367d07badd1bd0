#include "models/dense/compute_choice.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/cpu_features.h"
#include "models/dense/int8_kernels.h"
#include "models/dense/linear.h"
#include "models/status_macros.h"

namespace longview::models {

namespace {

absl::Status UnknownType(const std::string& asked) {
  return absl::InvalidArgumentError(absl::StrCat("dtype: \"", asked.substr(0, 64),
                                                 "\" is not one of auto, fp32, bf16, fp16, int8"));
}

// Packs and multiplies a small matrix.
absl::Status TryBf16() {
  constexpr int kSize = 32;
  const std::vector<float> weight(kSize * kSize, 1.0f);
  PanelRules rules;
  return Linear::Pack("bf16 trial", weight, kSize, kSize, Compute::kBf16, rules).status();
}

// fp32, though the directory or the flag says something else.
ComputeChoice Fp32Instead(std::string why) {
  ComputeChoice choice;
  choice.notes = {"computed in fp32: " + why};
  choice.why = std::move(why);
  return choice;
}

constexpr char kNoInt8[] =
    "int8 would be slower than fp32 on this CPU, which has neither an int8 dot product nor AVX2";

Compute BesideInt8() {
  return kernels::Bf16IsNative() && TryBf16().ok() ? Compute::kBf16 : Compute::kFp32;
}

ComputeChoice Int8(std::string why) {
  ComputeChoice choice = {.compute = BesideInt8(), .int8 = true, .why = std::move(why)};
  if (ChooseInt8().support == Int8Support::kWidened) {
    choice.notes = {"int8: this CPU has no int8 dot product; 16-bit products of AVX2 are used"};
  }
  return choice;
}

// By what the directory says. `source` names the file.
absl::StatusOr<ComputeChoice> ChooseAsSaid(const std::string& said, const std::string& source) {
  const std::string claim = said.empty() ? source + " names no type" : source + " says " + said;
  const bool native = kernels::Bf16IsNative();
  if (said == "int8") {
    return ChooseInt8().support == Int8Support::kNone ? Fp32Instead(kNoInt8) : Int8(claim);
  }
  if (said == "fp16" || said == "float16") {
    return Fp32Instead(claim + ", which CPUs do not multiply" +
                       (native ? "; --dtype bf16 is faster and less exact" : ""));
  }
  if (said != "bf16" && said != "bfloat16") return ComputeChoice{.why = claim};
  if (!native) return Fp32Instead(claim + ", which is no faster on this CPU");
  if (absl::Status status = TryBf16(); !status.ok()) {
    return Fp32Instead(claim + ", which is not available here: " + std::string(status.message()));
  }
  return ComputeChoice{.compute = Compute::kBf16, .why = claim};
}

}  // namespace

const char* ChosenTypeName(const ComputeChoice& choice) {
  return choice.int8 ? "int8" : ComputeName(choice.compute);
}

absl::StatusOr<ComputeChoice> ChooseCompute(const std::string& asked, const std::string& serving,
                                            const std::string& stored) {
  static constexpr char kFlag[] = "--dtype says so";
  if (asked == "fp32") return ComputeChoice{.why = kFlag};
  if (asked == "fp16") {
    return absl::InvalidArgumentError("dtype: fp16 is not served on a CPU; use fp32 or bf16");
  }
  if (asked == "auto") {
    return serving.empty() ? ChooseAsSaid(stored, "config.json")
                           : ChooseAsSaid(serving, "longview.json");
  }
  if (asked == "int8") {
    if (ChooseInt8().support == Int8Support::kNone) {
      return absl::InvalidArgumentError(absl::StrCat("dtype: ", kNoInt8));
    }
    return Int8(kFlag);
  }
  if (asked != "bf16") return UnknownType(asked);
  if (absl::Status status = TryBf16(); !status.ok()) {
    return Fp32Instead("bf16 is not available on this CPU: " + std::string(status.message()));
  }
  return ComputeChoice{.compute = Compute::kBf16, .why = kFlag};
}

absl::StatusOr<ComputeChoice> ChooseDeviceCompute(const std::string& asked,
                                                  const std::string& serving,
                                                  const std::string& stored) {
  if (asked == "int8") {
    return absl::InvalidArgumentError("dtype: int8 is served on a CPU; use --device=cpu");
  }
  if (asked != "auto" && asked != "fp32" && asked != "bf16" && asked != "fp16") {
    return UnknownType(asked);
  }
  ComputeChoice choice;
  if (asked == "auto" && serving == "int8") {
    ASSIGN_OR_RETURN(choice, ChooseDeviceCompute(asked, "", stored));
    choice.notes.emplace_back("longview.json says int8, which is the CPU's");
    return choice;
  }
  const std::string& said = asked != "auto" ? asked : !serving.empty() ? serving : stored;
  if (said == "bf16" || said == "bfloat16") choice.compute = Compute::kBf16;
  if (said == "fp16" || said == "float16") choice.compute = Compute::kFp16;
  choice.why = asked != "auto"    ? "--dtype says so"
               : !serving.empty() ? "longview.json says " + serving
               : !stored.empty()  ? "config.json says " + stored
                                  : "config.json names no type";
  return choice;
}

}  // namespace longview::models
