// Vision Longformer and ViL-LS as families of image models: which sizes they take, what these cost.
#pragma once

#include "models/vil/pass.h"
#include "models/vision/weighted_family.h"

namespace longview::models {

// A context whose plans are a device's: it has room for whole maps, nothing is cut into slices.
void PlanForDevice(VilContext& context);

class Vil : public WeightedVision<VilBatch, LoadVilWeights> {
 public:
  using Forward = VilForward;
  using WeightedVision::WeightedVision;

  absl::Status CheckSize(ImageSize size) const override;
  EncoderWork WorkOf(ImageSize size) const override;

 protected:
  void PlanForDevice() { models::PlanForDevice(context_); }

 private:
  // The stages' work.
  virtual EncoderWork CountWork(ImageSize size) const;
};

// Errors as Vil::CheckSize, before there is a model.
absl::Status CheckVilSize(const VilConfig& config, ImageSize size);

}  // namespace longview::models
