// CvT*-LS over a ragged batch: blocks of x + Attn(LN(x)), then x + MLP(LN(x)). Queries, keys,
// values and the scores of landmarks come from separable convolutions over LN(x); attention is
// that of long_short/map_plan.h.
//
// Rows go through a block in bands: all of them at once, or on the host large maps slice by slice,
// so that their projections never exist as a whole.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/cvt_ls/config.h"
#include "models/cvt_ls/convolve.h"
#include "models/cvt_ls/weights.h"
#include "models/ops/long_short.h"
#include "models/vision/context.h"
#include "models/vision/long_short_map.h"
#include "models/vision/staged_pass.h"

namespace longview::models {

using CvtContext = VisionContext<CvtConfig, CvtWeights>;

class CvtPass final : public StagedPass {
 public:
  // Borrows the context.
  CvtPass(const CvtContext& context, std::span<const VisionPicture> pictures);

 private:
  struct PlannedStage {
    LongShortPattern pattern;
    std::vector<MapTokens> images;  // Images with tokens window by window.
    int64_t rows = 0;
    std::vector<LongShortBand> bands;
    MapNeighbours neighbours;

    NeighboursRef neighbours_ref;
    std::vector<LongShortLists> lists;  // By band.
    LongShortMemory memory;
  };
  // A block that runs.
  struct At {
    Backend& backend;
    size_t stage;
    int block;
  };
  struct LargeRows;

  EmbedWeights EmbedOf(size_t stage) const override;
  void StageLists(Backend& backend, size_t stage) override;
  void CarveStage(Backend& backend, size_t stage, Carver& carver) override;
  void RunBlock(Backend& backend, size_t stage, int block) override;

  PlannedStage PlanStage(size_t stage, std::span<const ImageSize> maps) const;

  // LN(x) of rows [first, first + count) of the batch, to the front of normed.
  void Norm(const At& at, int64_t first, int64_t count) const;
  // `layer` over rows of the batch from `first` on; `from` are those from `from0` on.
  ops::Convolve Convolution(const At& at, const Separable& layer, const Rows& from, int64_t from0,
                            int64_t first, const Rows& out) const;
  // Projections of LN(x), whose first row is the batch's `normed0`; queries where they are given.
  void Project(const At& at, int64_t normed0, int64_t first, const LongShortRows& out) const;
  void NormTokens(const At& at, const LongShortRows& rows) const;
  void RunWhole(const At& at, size_t band) const;
  void RunLarge(const At& at, const LongShortBand& band) const;
  // The steps behind attention, whose output is `z`.
  void FeedForward(const At& at, const LongShortBand& band, const Rows& z) const;

  const CvtBlock& BlockOf(const At& at) const {
    return context_.weights->stages[at.stage].blocks[static_cast<size_t>(at.block)];
  }
  const NormWeight* LandmarkNorm(const At& at) const {
    return context_.config->dual_norm ? &BlockOf(at).landmark_norm : nullptr;
  }

  const CvtContext& context_;
  std::vector<PlannedStage> stages_;
};

}  // namespace longview::models
