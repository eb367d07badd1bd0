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
#include "models/long_short/map_slices.h"
#include "models/vision/map_tokens.h"

namespace longview::models {

// Borrowed, immutable.
struct CvtContext : ModelContext<CvtConfig, CvtWeights> {
  using ModelContext::ModelContext;

  // All stages of an image that has more tokens in its first one attend in slices, each of at least
  // so many queries. Slices cost: keys and values are projected once for the landmarks and once
  // for the slices.
  int64_t large_tokens = 16000;
  int64_t slice_tokens = 1024;
};

// Rows of a batch that go through a block together: some images as a whole, or one in slices.
struct CvtBand {
  int64_t row0 = 0;
  int64_t rows = 0;
  LongShortPlan whole;
  LongShortMap map;                   // No slices: whole.
  std::vector<LongShortPlan> shapes;  // Of the slices.

  bool is_large() const { return !map.slices.empty(); }
};

// Tokens lie window by window.
struct CvtStagePlan {
  std::vector<MapTokens> images;
  std::vector<CvtBand> bands;  // In the order of their rows.
  // By row: its image and its place on the map; y < 0 for class rows.
  std::vector<TokenFinder::Place> places;

  int64_t rows() const { return static_cast<int64_t>(places.size()); }
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

// One block of memory that all stages share: at a time, only the stage that runs and the residual
// stream it came from are alive.
std::vector<CvtBuffers> CarveCvtBuffers(const CvtContext& context,
                                        std::span<const CvtStagePlan> plans, Carver& carver);

// Floats from the first of a large band's scores to those of its values.
int64_t CvtScores(const CvtStage& stage, const CvtBand& band);

}  // namespace longview::models
