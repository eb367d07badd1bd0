// A batch of images on its way through the stages of a Vision Longformer or ViL-LS.
#pragma once

#include <span>
#include <vector>

#include "models/vil/buffers.h"
#include "models/vision/staged_batch.h"

namespace longview::models {

// The residual stream is fp32 in both compute types.
class VilBatch final : public StagedBatch {
 public:
  VilBatch(const VilContext& context, std::span<const VisionInput> inputs, ScratchKeeper& scratch,
           EncoderTimes* times);

  static size_t ScratchBytes(const VilContext& context, std::span<const ImageSize> sizes);

  std::vector<float> Logits(int i) const override;

 private:
  static std::vector<VilStagePlan> MakePlans(const VilContext& context,
                                             std::span<const ImageSize> sizes, bool measure);

  size_t Stages() const override { return context_.config->stages.size(); }
  int Blocks(size_t stage) const override { return context_.config->stages[stage].blocks; }
  void Plan(std::span<const ImageSize> sizes) override;
  void Carve(Carver& carver) override;
  void Embed() override;
  void RunBlock() override;
  Rows RowsOf(int member) const override;
  std::vector<float> Feature(int member) const override;

  void EmbedGlobals(const MapTokens& image);
  void GatherPatch(TokenFinder::Place place, std::byte* to) const;
  void PlaceRow(TokenFinder::Place place, const void* y) const;

  const VilContext& context_;
  const RowKernels& kernels_;
  std::vector<VilStagePlan> plans_;
  VilBatchBuffers buffers_;
};

}  // namespace longview::models
