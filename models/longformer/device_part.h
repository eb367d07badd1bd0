// Documents that go through a Longformer on a device together: rows go in once and come out once,
// everything between stays in the device's memory.
#pragma once

#include "models/device/device_run.h"
#include "models/longformer/device_batch.h"
#include "models/longformer/device_buffers.h"
#include "models/longformer/device_layer.h"

namespace longview::models {

// Results are the wanted rows, [outputs, H]. See DevicePart.
class DeviceLongformerPart final : public DevicePart {
 public:
  // REQUIRES: everything borrowed outlives it.
  DeviceLongformerPart(const DeviceEncoderContext& context, DeviceBatch::Sequences sequences);

  DeviceRunBytes bytes() const override { return bytes_; }
  void Stage(StagedLists& lists) override { batch_.Stage(lists); }
  void Carve(Carver& carver) override;

  int layers() const override { return context_.config->layers; }
  void Embed() override { steps_.Embed(); }
  void RunLayer(int layer, const DeviceTimer& timer) override;
  void AddResults(DeviceResults& results) const override;

 private:
  const DeviceEncoderContext& context_;
  DeviceBatch batch_;
  const DeviceRunBytes bytes_;
  DeviceBuffers buffers_;
  const DeviceLayers steps_;  // Over the two before.
};

}  // namespace longview::models
