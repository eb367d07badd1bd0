#include "models/device/device_weights.h"

#include <algorithm>
#include <vector>

#include "models/checkpoint/convert.h"

namespace longview::models {

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
  PutTyped(weight, to.compute, to.weight);
  Put(bias, to.bias);
  return ChooseDevicePanels(device_, name, rules_, to);
}

void DeviceFill::PutNorm(const Norm& norm, const DeviceNorm& to) {
  Put(norm.gamma, to.gamma);
  Put(norm.beta, to.beta);
}

void DeviceFill::PutTable(const TensorView& table, float factor, float* to) {
  constexpr int64_t kElements = int64_t{1} << 22;
  std::vector<float> values;
  for (int64_t first = 0; first < table.elements(); first += kElements) {
    values.resize(static_cast<size_t>(std::min(kElements, table.elements() - first)));
    CopyFloat32(table, first, values);
    for (float& value : values) value *= factor;
    Put(values, to + first);
  }
}

}  // namespace longview::models
