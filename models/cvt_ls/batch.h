// A batch of images on its way through the stages of a CvT*-LS.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "models/cvt_ls/buffers.h"
#include "models/vision/planned_batch.h"

namespace longview::models {

struct CvtParts {
  using Context = CvtContext;
  using Plan = CvtStagePlan;
  using Buffers = CvtBuffers;

  static auto Maps(const CvtConfig&, ImageSize image) { return CvtMaps(image); }
  // Nothing but sizes depends on the map.
  static Plan PlanStage(const CvtContext& context, size_t stage, std::span<const ImageSize> maps,
                        bool /*measure*/) {
    return PlanCvtStage(context, stage, maps);
  }
  static constexpr auto Carve = CarveCvtStage;
  static int64_t PanelWidth(const CvtConfig& config, size_t stage) {
    const int64_t channels = stage == 0 ? 3 : config.stages[stage - 1].width;
    const int64_t kernel = kCvtEmbeddings[stage].kernel;
    return std::max<int64_t>(channels * kernel * kernel, config.stages[stage].width);
  }
};

class CvtBatch final : public PlannedBatch<CvtParts> {
 public:
  using PlannedBatch::PlannedBatch;

 private:
  TokenMaker Tokens() const override;
  void EnterStage() override;
  void RunBlock() override;
  std::vector<float> Feature(int member) const override;
};

}  // namespace longview::models
