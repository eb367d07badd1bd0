// How the tokens of a batch lie in one stage, and who attends to whom there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/span/plan.h"
#include "models/long_short/map_slices.h"
#include "models/vil/context.h"
#include "models/vision/map_tokens.h"

namespace longview::models {

// One call of attention, and biases between local tokens by its tables.
struct VilAttentionPlan {
  kernels::Plan plan;
  std::vector<VilMapCache::Entry> maps;  // Empty where there are none, and for measuring.
};

// Long-short attention of one band: its images as a whole, or its image in slices.
struct VilLongShort {
  LongShortPlan whole;
  LongShortMap map;                      // No slices: whole.
  std::vector<LongShortPlan> shapes;     // Of the slices.
  std::vector<VilMapCache::Entry> maps;  // Biases by map size, or by shape; empty without.
};

// Rows that are projected, attend and go through their MLP together, before the next band's: a
// large map's projections never exist as a whole.
//
// Either all rows of one or more images, or a slice of one image: some rows of its chunks, with the
// chunks above and below among the keys. A slice's global rows are keys only; what they see of all
// slices is added up from slice to slice.
struct VilBand {
  size_t attention = 0;  // Which of the stage's plans; its row 0 is the band's first buffer row.
  int64_t row0 = 0;      // Of the batch; of a slice: the image's first.
  int64_t rows = 0;      // In the buffers; of a slice: globals, then tokens [load_begin, load_end).

  // Of slices, as ranks of local tokens of image `image`.
  int image = -1;  // -1: whole images.
  int64_t load_begin = 0, load_end = 0;
  int64_t begin = 0, end = 0;  // Whose outputs it makes.

  bool is_slice() const { return image >= 0; }
};

struct VilStagePlan {
  std::vector<MapTokens> images;
  int64_t rows = 0;                    // Of the batch, globals included.
  std::vector<int32_t> offsets = {0};  // Image i is rows [offsets[i], offsets[i + 1]).
  std::vector<VilBand> bands;          // In the order of their rows.
  // Every row of a band but slices' global ones; with separate global projections the local rows.
  // Empty for attentions that have their own kernels.
  std::vector<VilAttentionPlan> attention;
  VilAttentionPlan globals;              // Global rows, with separate projections only.
  std::vector<VilLongShort> long_short;  // In place of `attention`.
  // By map size of the batch: positions, and the biases of full attention; empty where nothing
  // depends on it, and in plans made for measuring.
  std::vector<VilMapCache::Entry> maps;
  int64_t keys = 0;  // Projected keys of all images (Linformer, spatial reduction).

  int64_t band_rows() const;  // The most of a band.
  bool has_slices() const;
};

// `measure`: only sizes are wanted, the cache stays untouched. Thread-safe then.
VilStagePlan PlanVilStage(const VilContext& context, size_t stage, std::span<const ImageSize> maps,
                          bool measure);

// Keys that an image's tokens attend to in a stage with projected keys; 0 elsewhere.
int64_t ProjectedKeys(const VilStage& stage, ImageSize map);

// Long-short attention of a stage.
LongShortPattern LongShortOf(const VilStage& stage);

// The cached weights of maps of these sizes; nullptr in place of those that are not there.
std::vector<VilMapCache::Entry> FindVilMaps(const VilContext& context, size_t stage,
                                            std::span<const ImageSize> sizes);
// Makes those that are missing. `bias_rows`: of every size, empty without biases.
void AddVilMaps(const VilContext& context, size_t stage, std::span<const ImageSize> sizes,
                std::span<const std::vector<int32_t>> bias_rows,
                std::vector<VilMapCache::Entry>& entries);

}  // namespace longview::models
