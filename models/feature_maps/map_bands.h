// How the images of a stage go through long-short attention: as one band, unless one of them is
// large. Then each is a band of its own, and the large ones attend in slices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/feature_maps/map_plan.h"
#include "models/feature_maps/map_slices.h"
#include "models/feature_maps/map_tokens.h"

namespace longview::models {

// Rule for large images: slices cost, as landmarks are of all tokens, so keys and values are
// projected once for them and once for the slices. Defaults are those of all models.
struct LongShortCuts {
  // All stages of an image that has more tokens in its first one attend in slices, each of at least
  // so many queries.
  int64_t large_tokens = 16000;
  int64_t slice_tokens = 512;
  bool never = false;  // All images are small. So are those that CanSlice refuses.
};

// Rows of a batch that go through a block together: some images as a whole, or one in slices.
// Plans are shared by all bands of equal shape.
struct LongShortBand {
  int64_t row0 = 0;
  int64_t rows = 0;
  std::shared_ptr<const LongShortPlan> whole;
  LongShortMap map;                                          // No slices: whole.
  std::vector<std::shared_ptr<const LongShortPlan>> shapes;  // Plans of the slices.
  // Maps whose biases the plans read: by table of `whole`, or by shape.
  std::vector<ImageSize> maps;

  bool is_large() const { return !map.slices.empty(); }
};

// `ratio`: pixels of a token's side here over those in the first stage.
std::vector<LongShortBand> PlanLongShortBands(const LongShortPattern& pattern,
                                              const LongShortCuts& cuts, size_t stage,
                                              int64_t ratio, int tile_rows,
                                              std::span<const MapTokens> images,
                                              ShapeCache& shapes);

}  // namespace longview::models
