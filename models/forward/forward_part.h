// A forward as a part of a batch on a device (device/device_run.h). Its results come back one
// behind the other.
#pragma once

#include <memory>

#include "models/device/device_run.h"
#include "models/forward/forward.h"
#include "models/ops/device_backend.h"

namespace longview::models {

class ForwardPart final : public DevicePart {
 public:
  // REQUIRES: the device outlives the part.
  ForwardPart(std::unique_ptr<Forward> forward, const Device& device, Compute compute);

  DeviceRunBytes bytes() const override { return bytes_; }
  // Bytes for sequences of these lengths whatever their masks.
  const DeviceRunBytes& most_bytes() const { return most_bytes_; }

  void Stage(StagedLists& lists) override;
  void Carve(Carver& carver) override;
  int layers() const override { return forward_->layers(); }
  void Embed() override { forward_->Embed(backend_); }
  void RunLayer(int layer, const DeviceTimer& timer) override;
  void AddResults(DeviceResults& results) const override;

 private:
  const std::unique_ptr<Forward> forward_;
  DeviceBackend backend_;
  const ForwardNeed need_;
  const DeviceRunBytes bytes_, most_bytes_;
};

// The bytes of such a part, from its count.
DeviceRunBytes PartBytes(const ForwardNeed& need, const Forward& forward);

}  // namespace longview::models
