// A batch of images on its way through the stages of a Vision Longformer or ViL-LS.
#pragma once

#include <span>
#include <vector>

#include "models/vil/buffers.h"
#include "models/vision/staged_batch.h"

namespace longview::models {

class VilBatch final : public StagedBatch {
 public:
  using Context = VilContext;

  VilBatch(const VilContext& context, std::span<const VisionInput> inputs, ScratchKeeper& scratch,
           EncoderTimes* times)
      : StagedBatch(context, inputs, scratch, times), context_(context) {}

  static size_t ScratchBytes(const VilContext& context, std::span<const ImageSize> sizes);

 private:
  static std::vector<VilStagePlan> MakePlans(const VilContext& context,
                                             std::span<const ImageSize> sizes, bool measure);

  size_t Stages() const override { return context_.config->stages.size(); }
  int Blocks(size_t stage) const override { return context_.config->stages[stage].blocks; }
  void Plan(std::span<const ImageSize> sizes) override;
  void Carve(Carver& carver) override;
  Stream StreamOf(size_t stage) const override;
  TokenMaker Tokens() const override;
  void AddPlace(TokenFinder::Place place, float* token) const override;
  void EnterStage() override;
  void RunBlock() override;
  std::vector<float> Feature(int member) const override;
  const DenseLayer& Head() const override { return *context_.weights->head; }

  const VilContext& context_;
  std::vector<VilStagePlan> plans_;
  VilBatchBuffers buffers_;
};

}  // namespace longview::models
