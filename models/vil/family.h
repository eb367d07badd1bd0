// Vision Longformer and ViL-LS as families of image models: which sizes they take, what these cost.
// On the CPU as it is; device_model.h puts the stages of Vision Longformer on a device.
#pragma once

#include <vector>

#include "models/vil/batch.h"
#include "models/vision/weighted_family.h"

namespace longview::models {

class Vil : public WeightedVision<VilBatch, LoadVilWeights> {
 public:
  using WeightedVision::WeightedVision;

  // REQUIRES: CheckSize.
  static std::vector<ImageSize> MapSizes(const VilConfig& config, ImageSize picture) {
    return *VilMaps(config, picture);
  }

  absl::Status CheckSize(ImageSize size) const override;
  EncoderWork WorkOf(ImageSize size) const override;
};

// Errors as Vil::CheckSize, before there is a model.
absl::Status CheckVilSize(const VilConfig& config, ImageSize size);

}  // namespace longview::models
