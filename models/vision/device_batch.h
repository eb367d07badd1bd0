// A batch of images whose stages are on a device and whose head is on the host.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/device/device_run.h"
#include "models/vision/family.h"

namespace longview::models {

// One picture of a part.
struct DevicePicture {
  ImageSize size;
  const PixelValues* pixels = nullptr;  // Null: only bytes are asked for.
  std::vector<int> stages;              // Whose maps are wanted, rising.
};

// One whose bytes are asked for: with all maps, which is the most it may need.
DevicePicture WholePicture(ImageSize size, size_t stages);

// What a family brings. Used by the executor's thread.
class DeviceVisionLayers {
 public:
  virtual ~DeviceVisionLayers() = default;

  // The pictures as a part, whose results are fp32: the features of all pictures [feature_floats],
  // then the wanted maps [channels, rows, columns], picture by picture, stages rising.
  virtual std::unique_ptr<DevicePart> Plan(std::span<const DevicePicture> pictures) const = 0;

  // Of the vector that enters the head; 0 where nothing reads it.
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
  std::vector<float> Embedding(int i) const override { return features_[i]; }
  std::vector<float> Logits(int i) const override { return layers_.Head(features_[i]); }
  std::vector<FeatureMap> TakeMaps(int i) override { return std::move(maps_[i]); }

 private:
  int size() const override { return static_cast<int>(pictures_.size()); }
  std::string NameOf(int item) const override;
  std::unique_ptr<DevicePart> Plan(std::span<const int> items) const override;
  void Keep(std::span<const int> items, const std::byte* results) override;

  const DeviceVisionLayers& layers_;
  std::vector<DevicePicture> pictures_;
  std::vector<std::vector<float>> features_;   // By picture.
  std::vector<std::vector<FeatureMap>> maps_;  // The same.
  DeviceRun run_;
};

}  // namespace longview::models
