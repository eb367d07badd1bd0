// A batch of images on its way through the stages of a CvT*-LS.
#pragma once

#include <span>
#include <vector>

#include "models/cvt_ls/buffers.h"
#include "models/vision/staged_batch.h"

namespace longview::models {

class CvtBatch final : public StagedBatch {
 public:
  using Context = CvtContext;

  CvtBatch(const CvtContext& context, std::span<const VisionInput> inputs, ScratchKeeper& scratch,
           EncoderTimes* times)
      : StagedBatch(context, inputs, scratch, times), context_(context) {}

  static size_t ScratchBytes(const CvtContext& context, std::span<const ImageSize> sizes);

 private:
  static std::vector<CvtStagePlan> MakePlans(const CvtContext& context,
                                             std::span<const ImageSize> sizes);

  size_t Stages() const override { return kCvtStages; }
  int Blocks(size_t stage) const override { return context_.config->stages[stage].blocks; }
  void Plan(std::span<const ImageSize> sizes) override { plans_ = MakePlans(context_, sizes); }
  void Carve(Carver& carver) override { buffers_ = CarveCvtBuffers(context_, plans_, carver); }
  Stream StreamOf(size_t stage) const override;
  TokenMaker Tokens() const override;
  void EnterStage() override;
  void RunBlock() override;
  std::vector<float> Feature(int member) const override;
  const DenseLayer& Head() const override { return *context_.weights->head; }

  const CvtContext& context_;
  std::vector<CvtStagePlan> plans_;
  std::vector<CvtBuffers> buffers_;
};

}  // namespace longview::models
