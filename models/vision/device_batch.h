// A batch of images whose stages are on a device and whose head is on the host.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/device/device_run.h"
#include "models/vision/family.h"
#include "models/vision/pass_batch.h"

namespace longview::models {

// A family's part of it. Used by the executor's thread.
class DeviceVisionLayers {
 public:
  virtual ~DeviceVisionLayers() = default;

  // The pictures as a part, whose results are a pass's.
  virtual std::unique_ptr<DevicePart> Plan(std::span<const VisionPicture> pictures) const = 0;

  // Floats of the vector that enters the head; 0 where nothing reads it.
  virtual int64_t feature_floats() const = 0;
  // A picture's maps by stage, without values.
  virtual std::vector<FeatureMap> MapsOf(ImageSize picture) const = 0;
  // REQUIRES: the model has a head.
  virtual std::vector<float> Head(std::span<const float> feature) const = 0;
};

// See VisionBatch. Throws DeviceError, too.
class DeviceVisionBatch final : public VisionBatch, private DeviceItems {
 public:
  // REQUIRES: everything borrowed outlives the batch.
  DeviceVisionBatch(const Device& device, DeviceWorkspace& workspace,
                    const DeviceVisionLayers& layers, std::span<const VisionInput> inputs,
                    EncoderTimes* times);

  bool Advance() override { return run_.Advance(); }
  void Drop(int i) override { run_.Drop(i); }
  std::vector<float> Embedding(int i) const override { return results_.features[i]; }
  std::vector<float> Logits(int i) const override { return layers_.Head(results_.features[i]); }
  std::vector<FeatureMap> TakeMaps(int i) override { return std::move(results_.maps[i]); }

 private:
  int size() const override { return static_cast<int>(pictures_.size()); }
  std::string NameOf(int item) const override;
  std::unique_ptr<DevicePart> Plan(std::span<const int> items) const override;
  void Keep(std::span<const int> items, const std::byte* results) override;

  const DeviceVisionLayers& layers_;
  const std::vector<VisionPicture> pictures_;
  PassResults results_;
  DeviceRun run_;
};

}  // namespace longview::models
