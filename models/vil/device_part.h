// Pictures that go through a Vision Longformer on a device together: pixels go in once, features
// and maps come out once, everything between stays in the device's memory.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "models/device/device_run.h"
#include "models/vil/device_block.h"
#include "models/vision/device_batch.h"

namespace longview::models {

// What one picture of this size needs at most, from the configuration alone.
DeviceRunBytes DeviceVilBytes(const VilConfig& config, Compute compute, const Device& device,
                              ImageSize size);

// So that plans are a device's: it has room for whole maps, nothing is cut into slices.
void PlanForDevice(VilContext& context);

// Layers are the blocks of all stages. Results as DeviceVisionLayers says.
class DeviceVilPart final : public DevicePart {
 public:
  // REQUIRES: everything borrowed outlives it.
  DeviceVilPart(const DeviceVilContext& context, std::span<const DevicePicture> pictures);
  DeviceVilPart(const DeviceVilPart&) = delete;  // Stages refer to each other.

  DeviceRunBytes bytes() const override { return bytes_; }
  void Stage(StagedLists& lists) override;
  void Carve(Carver& carver) override;

  int layers() const override { return static_cast<int>(places_.size()); }
  void Embed() override {}  // Tokens are made by the first layer of every stage.
  void RunLayer(int layer, const DeviceTimer& timer) override;
  void AddResults(DeviceResults& results) const override;

 private:
  struct Place {
    size_t stage = 0;
    int block = 0;
  };
  // Maps of one stage that are wanted.
  struct Planes {
    std::vector<kernels::cuda::PlaneImage> images;
    int64_t most = 0;
    const kernels::cuda::PlaneImage* staged = nullptr;
  };

  DeviceRunBytes Count();
  void PlaceResults();
  void KeepMaps(size_t stage) const;
  void MakeFeatures() const;
  void MakeMeans(const DeviceVilBuffers& buffers) const;

  const DeviceVilContext& context_;
  const VilConfig& config_;
  const std::vector<DevicePicture> pictures_;
  std::vector<DeviceVilStage> stages_;
  std::vector<Place> places_;            // By layer.
  std::vector<Planes> planes_;           // By stage.
  int64_t results_ = 0;                  // Floats.
  const int32_t* class_from_ = nullptr;  // On the device: the rows that features are read of,
  const kernels::cuda::PoolPiece* piece_list_ = nullptr;  // or the pieces of their means.
  const int32_t* piece0_ = nullptr;
  int32_t pieces_ = 0;
  DeviceRunBytes bytes_;
  DeviceVilMemory memory_;
};

}  // namespace longview::models
