// Plans and buffers of one batch of a CvT*-LS.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "models/cvt_ls/config.h"
#include "models/cvt_ls/weights.h"
#include "models/dense/scratch.h"
#include "models/long_short/map_bands.h"
#include "models/vision/context.h"
#include "models/vision/map_tokens.h"

namespace longview::models {

// Borrowed, immutable.
struct CvtContext : VisionContext<CvtConfig, CvtWeights> {
  using VisionContext::VisionContext;

  LongShortCuts cuts;
};

// Tokens lie window by window. What depends on sizes alone is the model's, by shape.
struct CvtStagePlan {
  std::vector<MapTokens> images;
  int64_t rows = 0;                  // Of the batch, class rows included.
  std::vector<LongShortBand> bands;  // In the order of their rows.
  // By image and row behind row0: the row-major position on the map; -1 for class rows.
  std::vector<std::shared_ptr<const std::vector<int32_t>>> positions;

  // y < 0 for class rows. REQUIRES: 0 <= row < rows.
  TokenFinder::Place PlaceOf(int64_t row) const;
};

CvtStagePlan PlanCvtStage(const CvtContext& context, size_t stage, std::span<const ImageSize> maps);

LongShortPattern LongShortOf(const CvtConfig& config, const CvtStage& stage);

// Of one stage. "T" is an element of the compute type; "band" is the most rows of a whole band, or
// of a slice of a large one.
struct CvtBuffers {
  float* x = nullptr;               // [rows, C] residual stream.
  std::byte* panel = nullptr;       // T [panel, widest gathered row].
  std::byte* rows = nullptr;        // T [band + neighbours + panel, C] LN(x); whole: then outputs.
  std::byte* qkv = nullptr;         // T [band, 3C]
  float* scores = nullptr;          // [band, h r], whole bands only.
  float* value_scores = nullptr;    // The same, without shared landmarks.
  std::byte* outputs = nullptr;     // Of a large band: T [rows + panel, C], before the scores.
  std::byte* long_short = nullptr;  // LongShortBytes, LongShortSliceBytes.
  std::byte* workspace = nullptr;
};

// All but x and panel, which PlannedBatch places.
CvtBuffers CarveCvtStage(const CvtContext& context, size_t stage, const CvtStagePlan& plan,
                         Carver& carver);

}  // namespace longview::models
