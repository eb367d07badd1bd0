// A batch of images on its way through the stages of a Vision Longformer or ViL-LS.
#pragma once

#include <span>
#include <vector>

#include "models/vil/buffers.h"
#include "models/vision/planned_batch.h"

namespace longview::models {

struct VilParts {
  using Context = VilContext;
  using Plan = VilStagePlan;
  using Buffers = VilBuffers;

  static constexpr auto Maps = VilMaps;
  static constexpr auto PlanStage = PlanVilStage;
  static constexpr auto Carve = CarveVilStage;
  static int64_t PanelWidth(const VilConfig& config, size_t stage) {
    const int64_t channels = stage == 0 ? config.channels : config.stages[stage - 1].width;
    return channels * config.stages[stage].patch * config.stages[stage].patch;
  }
};

class VilBatch final : public PlannedBatch<VilParts> {
 public:
  using PlannedBatch::PlannedBatch;

 private:
  TokenMaker Tokens() const override;
  void AddPlace(TokenFinder::Place place, float* token) const override;
  void EnterStage() override;
  void RunBlock() override;
  std::vector<float> Feature(int member) const override;
};

}  // namespace longview::models
