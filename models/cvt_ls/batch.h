// A batch of images on its way through the stages of a CvT*-LS.
#pragma once

#include <span>
#include <vector>

#include "models/cvt_ls/buffers.h"
#include "models/vision/staged_batch.h"

namespace longview::models {

// The residual stream is fp32 in both compute types.
class CvtBatch final : public StagedBatch {
 public:
  CvtBatch(const CvtContext& context, std::span<const VisionInput> inputs, ScratchKeeper& scratch,
           EncoderTimes* times)
      : StagedBatch(inputs, scratch, times), context_(context) {}

  static size_t ScratchBytes(const CvtContext& context, std::span<const ImageSize> sizes);

  std::vector<float> Logits(int i) const override;

 private:
  static std::vector<CvtStagePlan> MakePlans(const CvtContext& context,
                                             std::span<const ImageSize> sizes);

  size_t Stages() const override { return kCvtStages; }
  int Blocks(size_t stage) const override { return context_.config->stages[stage].blocks; }
  void Plan(std::span<const ImageSize> sizes) override { plans_ = MakePlans(context_, sizes); }
  void Carve(Carver& carver) override { buffers_ = CarveCvtBuffers(context_, plans_, carver); }
  void Embed() override;
  void RunBlock() override;
  Rows RowsOf(int member) const override;
  std::vector<float> Feature(int member) const override;

  void GatherEmbedding(TokenFinder::Place place, std::byte* to) const;

  const CvtContext& context_;
  std::vector<CvtStagePlan> plans_;
  CvtBuffers buffers_;
};

}  // namespace longview::models
