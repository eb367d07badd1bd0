// The layers of a model on their way to a device: what the checkpoint's loader reads goes to places
// that were listed in the same order.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/device/device_weights.h"
#include "models/layers/layer_sink.h"

namespace longview::models {

class DeviceLayerFill : public LayerSink {
 public:
  // Borrows all. REQUIRES: as many places as the loader reads linears and norms.
  DeviceLayerFill(DeviceFill& fill, std::vector<DeviceLinear*> linears,
                  std::vector<const DeviceNorm*> norms)
      : fill_(fill), linears_(std::move(linears)), norms_(std::move(norms)) {}

  absl::Status Linear(const std::string& name, std::span<const float> weight,
                      std::span<const float> bias) override {
    return fill_.PutLinear(name, weight, bias, *linears_[linear_++]);
  }

  void Norms(std::span<const Norm* const> norms) override {
    for (const Norm* norm : norms) fill_.PutNorm(*norm, *norms_[norm_++]);
  }

 protected:
  DeviceFill& fill() { return fill_; }

 private:
  DeviceFill& fill_;
  const std::vector<DeviceLinear*> linears_;
  const std::vector<const DeviceNorm*> norms_;
  size_t linear_ = 0, norm_ = 0;
};

}  // namespace longview::models
