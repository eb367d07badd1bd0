#include "models/device/device_weights.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/checkpoint/convert.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

constexpr float kLargestFp16 = 65504;

}  // namespace

DeviceLinear DevicePlaces::Linear(int64_t out, int64_t in) {
  DeviceLinear linear;
  linear.weight = Typed(out * in);
  linear.bias = Floats(out);
  linear.in = in;
  linear.out = out;
  linear.compute = compute_;
  return linear;
}

absl::Status DeviceFill::PutLinear(const std::string& name, std::span<const float> weight,
                                   std::span<const float> bias, DeviceLinear& to) {
  RETURN_IF_ERROR(PutTyped(name, weight, to.compute, to.weight));
  Put(bias, to.bias);
  return ChooseDevicePanels(device_, name, rules_, to);
}

absl::Status DeviceFill::PutTyped(const std::string& name, std::span<const float> values,
                                  Compute compute, void* to) {
  if (compute == Compute::kFp16) {
    const auto beyond =
        std::ranges::find_if(values, [](float value) { return std::abs(value) > kLargestFp16; });
    if (beyond != values.end()) {
      return absl::InvalidArgumentError(absl::StrCat(name, " has a weight of ", *beyond,
                                                     ", fp16 reaches to ", kLargestFp16,
                                                     "; use bf16 or fp32"));
    }
  }
  upload_.Put(values, compute, to);
  return absl::OkStatus();
}

void DeviceFill::PutNorm(const Norm& norm, const DeviceNorm& to) {
  Put(norm.gamma, to.gamma);
  Put(norm.beta, to.beta);
}

absl::Status DeviceFill::PutTable(const TensorView& table, float* to) {
  constexpr int64_t kElements = int64_t{1} << 22;
  std::vector<float> values;
  for (int64_t first = 0; first < table.elements(); first += kElements) {
    values.resize(static_cast<size_t>(std::min(kElements, table.elements() - first)));
    RETURN_IF_ERROR(ReadFloat32(table, first, values));
    Put(values, to + first);
  }
  return absl::OkStatus();
}

}  // namespace longview::models
