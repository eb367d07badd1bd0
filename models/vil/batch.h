// A batch of images on its way through the stages of a Vision Longformer or ViL-LS.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/dense/scratch_keeper.h"
#include "models/vil/buffers.h"
#include "models/vision/family.h"

namespace longview::models {

// See VisionBatch. The residual stream is fp32 in both compute types.
class VilBatch final : public VisionBatch {
 public:
  VilBatch(const VilContext& context, std::span<const VisionInput> inputs, ScratchKeeper& scratch,
           EncoderTimes* times);

  static size_t ScratchBytes(const VilContext& context, std::span<const ImageSize> sizes);

  bool Advance() override;
  void Drop(int i) override { dropped_[i] = true; }
  std::vector<float> Embedding(int i) const override { return features_[i]; }
  std::vector<float> Logits(int i) const override;
  std::vector<FeatureMap> TakeMaps(int i) override { return std::move(maps_[i]); }

 private:
  static std::vector<VilStagePlan> MakePlans(const VilContext& context,
                                             std::span<const ImageSize> sizes, bool measure);

  void Start();
  void Embed();
  void EmbedGlobals(const VilTokens& image);
  // A local token: its image and its row-major place there.
  struct Place {
    int image = 0;
    int position = 0;
  };
  void GatherPatch(Place place, std::byte* to) const;
  void PlaceRow(Place place, const void* y) const;
  void KeepMaps();
  void ReadFeatures();

  const VilContext& context_;
  const RowKernels& kernels_;
  std::vector<VisionInput> inputs_;
  ScratchKeeper& scratch_;
  EncoderTimes* const times_;
  std::vector<bool> dropped_;
  std::vector<int> members_;  // Images of the batch, by index as given.
  std::vector<VilStagePlan> plans_;
  std::unique_ptr<ScratchLoan> loan_;
  VilBuffers buffers_;
  size_t stage_ = 0;
  int block_ = 0;
  std::vector<std::vector<float>> features_;   // By index as given.
  std::vector<std::vector<FeatureMap>> maps_;  // The same.
};

}  // namespace longview::models
