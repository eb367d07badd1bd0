// Plans and buffers of one batch of a CvT*-LS.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "models/cvt_ls/config.h"
#include "models/cvt_ls/weights.h"
#include "models/dense/scratch.h"
#include "models/layers/compute_context.h"
#include "models/long_short/map_attention.h"
#include "models/vision/map_tokens.h"

namespace longview::models {

using CvtContext = ModelContext<CvtConfig, CvtWeights>;

// Tokens lie window by window.
struct CvtStagePlan {
  std::vector<MapTokens> images;
  LongShortPlan attention;
  // By row: its image and its place on the map; y < 0 for class rows.
  std::vector<TokenFinder::Place> places;

  int64_t rows() const { return attention.rows(); }
};

CvtStagePlan PlanCvtStage(const CvtContext& context, size_t stage, std::span<const ImageSize> maps);

LongShortPattern LongShortOf(const CvtConfig& config, const CvtStage& stage);

// "T" is an element of the compute type.
struct CvtBuffers {
  float* x[2] = {};                 // [rows, C] residual stream; stages take turns.
  std::byte* panel = nullptr;       // T [panel, widest gathered row].
  std::byte* rows = nullptr;        // T [rows + panel, C] LN(x); then attention's output.
  std::byte* qkv = nullptr;         // T [rows, 3C]
  float* scores = nullptr;          // [rows, h r]
  float* value_scores = nullptr;    // The same, without shared landmarks.
  std::byte* long_short = nullptr;  // LongShortBytes.
  std::byte* workspace = nullptr;
};

// Maxima over the stages of a batch.
CvtBuffers CarveCvtBuffers(const CvtContext& context, std::span<const CvtStagePlan> plans,
                           Carver& carver);

}  // namespace longview::models
