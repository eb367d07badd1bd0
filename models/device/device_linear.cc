#include "models/device/device_linear.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/layers/span_rows.h"

namespace longview::models {
namespace {

// Products of random rows by panel size. The rows of a panel are there again in every panel of
// kDevicePanel rows, so that one result says what every place must hold.
class PanelTrial {
 public:
  PanelTrial(const Device& device, const DeviceLinear& linear)
      : device_(device),
        linear_(linear),
        row_bytes_(static_cast<size_t>(linear.out * ElementBytes(linear.compute))),
        x_(device, Bytes(linear.in)),
        y_(device, Bytes(linear.out)) {
    std::mt19937 random(7);
    std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
    std::vector<float> rows(static_cast<size_t>(kDevicePanel * linear.in));
    for (float& value : rows) value = uniform(random);
    for (const int place : {kDevicePanel / 2 + 1, kDevicePanel - 1}) {
      std::copy_n(rows.begin(), linear.in, rows.begin() + place * linear.in);
    }
    WeightUpload upload(device);
    const size_t panel_bytes = Bytes(linear.in) / kMostDevicePanel * kDevicePanel;
    for (int row = 0; row < kMostDevicePanel; row += kDevicePanel) {
      upload.Put(rows, linear.compute,
                 x_.data() + static_cast<size_t>(row / kDevicePanel) * panel_bytes);
    }
    expected_ = Run(kDevicePanel);
  }

  // Are equal rows equal, wherever they stand in a panel?
  bool PlacesAgree() const {
    return std::ranges::all_of(std::array{kDevicePanel / 2 + 1, kDevicePanel - 1}, [&](int place) {
      return std::memcmp(expected_.data(), expected_.data() + place * row_bytes_, row_bytes_) == 0;
    });
  }

  // Do panels of so many rows give every row the bits of kDevicePanel?
  bool Agrees(int panel) {
    const std::vector<std::byte> got = Run(panel);
    for (size_t at = 0; at < got.size(); at += expected_.size()) {
      if (std::memcmp(got.data() + at, expected_.data(), expected_.size()) != 0) return false;
    }
    return true;
  }

 private:
  size_t Bytes(int64_t columns) const {
    return static_cast<size_t>(kMostDevicePanel * columns * ElementBytes(linear_.compute));
  }

  // All rows of the larger of `panel` and kDevicePanel.
  std::vector<std::byte> Run(int panel) {
    const int rows = std::max(panel, kDevicePanel);
    const auto in_bytes = static_cast<size_t>(linear_.in * ElementBytes(linear_.compute));
    for (int row = 0; row < rows; row += panel) {
      device_.Multiply({x_.data() + row * in_bytes, linear_.weight, y_.data() + row * row_bytes_,
                        panel, linear_.in, linear_.out, linear_.compute});
    }
    std::vector<std::byte> result(static_cast<size_t>(rows) * row_bytes_);
    const PinnedBlock host(device_, result.size());
    device_.Check(device_.api().copy_out(device_.stream(), host.data(), y_.data(), result.size()),
                  "trial products");
    device_.Wait();
    std::memcpy(result.data(), host.data(), result.size());
    return result;
  }

  const Device& device_;
  const DeviceLinear& linear_;
  const size_t row_bytes_;
  const DeviceBlock x_, y_;
  std::vector<std::byte> expected_;
};

}  // namespace

absl::Status ChooseDevicePanels(const Device& device, const std::string& name,
                                DevicePanelRules& rules, DeviceLinear& linear) {
  const auto shape = std::tuple(linear.out, linear.in, linear.compute);
  if (const auto known = rules.find(shape); known != rules.end()) {
    linear.panels = known->second;
    return absl::OkStatus();
  }
  PanelTrial trial(device, linear);
  if (!trial.PlacesAgree()) {
    return absl::InternalError(absl::StrCat(name, ": equal rows of one ", kDevicePanel,
                                            "-row product differ in bits on ", device.name(),
                                            "; answers would depend on the batch"));
  }
  DevicePanelSet panels;
  for (size_t i = 0; i < kDevicePanels.size(); ++i) {
    if (trial.Agrees(kDevicePanels[i])) panels.bits |= 1u << i;
  }
  linear.panels = panels;
  rules.emplace(shape, panels);
  return absl::OkStatus();
}

void MultiplyRows(const Device& device, const DeviceLinear& linear, const void* x, int64_t rows,
                  void* y) {
  const int64_t element = ElementBytes(linear.compute);
  for (int64_t row = 0; row < rows;) {
    const int panel = NextDevicePanel(linear.panels, rows - row);
    device.Multiply({static_cast<const std::byte*>(x) + row * linear.in * element, linear.weight,
                     static_cast<std::byte*>(y) + row * linear.out * element, panel, linear.in,
                     linear.out, linear.compute});
    row += panel;
  }
}

void MultiplyFewRows(const Device& device, const DeviceLinear& linear, const void* x, int64_t rows,
                     void* y) {
  const kernels::cuda::RowProducts args = {x,          linear.weight,           y, rows, linear.in,
                                           linear.out, SpanType(linear.compute)};
  device.Check(device.api().token.product(device.stream(), args), "products of few rows");
}

kernels::cuda::RowActivation DeviceActivation(Activation activation) {
  using kernels::cuda::RowActivation;
  switch (activation) {
    case Activation::kNone:
      return RowActivation::kNone;
    case Activation::kGelu:
      return RowActivation::kGelu;
    case Activation::kGeluTanh:
      return RowActivation::kGeluTanh;
    case Activation::kRelu:
      return RowActivation::kRelu;
    case Activation::kSilu:
      return RowActivation::kSilu;
    case Activation::kTanh:
      return RowActivation::kTanh;
    case Activation::kQuickGelu:
      return RowActivation::kQuickGelu;
  }
  return RowActivation::kNone;
}

void AddBias(const Device& device, const DeviceLinear& linear, void* y, int64_t rows,
             Activation activation) {
  const kernels::cuda::BiasRows args = {y,
                                        linear.bias,
                                        rows,
                                        static_cast<int32_t>(linear.out),
                                        DeviceActivation(activation),
                                        SpanType(linear.compute)};
  device.Check(device.api().rows.bias(device.stream(), args), "a linear's bias");
}

void GateRows(const Device& device, const DeviceLinear& linear, void* y, const DeviceLinear& gate,
              const void* gates, int64_t rows, Activation activation) {
  const kernels::cuda::GatedRows args = {y,
                                         linear.bias,
                                         gates,
                                         gate.bias,
                                         rows,
                                         static_cast<int32_t>(linear.out),
                                         DeviceActivation(activation),
                                         SpanType(linear.compute)};
  device.Check(device.api().encoder.gate(device.stream(), args), "a gate");
}

}  // namespace longview::models
