// How the tokens of a batch lie in one stage, and who attends to whom there. Plans and biases are
// the model's, by shape: a batch only says where its images lie.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "kernels/span/plan.h"
#include "models/feature_maps/map_tokens.h"
#include "models/vil/config.h"
#include "models/vil/map_weights.h"
#include "models/vil/weights.h"
#include "models/vision/context.h"

namespace longview::models {

struct VilContext : VisionContext<VilConfig, VilWeights> {
  using VisionContext::VisionContext;

  // Tables of all maps are joined then, too (JoinTables).
  void PlanForDevice() {
    VisionContext::PlanForDevice();
    band_tokens = std::numeric_limits<int64_t>::max();
  }

  // Maps of more local tokens attend slice by slice. A slice is no shorter than that.
  int64_t band_tokens = 4096;
};

// Attention of bands of one shape.
struct VilPlan {
  kernels::Plan plan;
  std::vector<std::vector<int32_t>> bias_rows;  // By map size of the band; empty without biases.
};
size_t BytesOf(const VilPlan& plan);

// Makes one table of those between local tokens, the entries of one map size behind the other's: a
// device takes few tables, a batch may have maps of any number of sizes.
// `first`: of these tables among the plan's.
void JoinTables(int32_t first, VilPlan& plan);

// Tables of global tokens come before those between local ones, but in long-short attention.
inline constexpr int32_t kGlobalTables = 2;

using VilMapEntry = std::shared_ptr<const VilMapWeights>;

// One call of attention, and biases between local tokens by its tables.
struct VilAttentionPlan {
  std::shared_ptr<const VilPlan> made;  // Null: no such call.
  std::vector<ImageSize> sizes;         // The maps', by table.
  std::vector<VilMapEntry> maps;        // Empty where there are none, and for measuring.

  bool empty() const { return made == nullptr || made->plan.items.empty(); }
};

// Rows that are projected, attend and go through their MLP together, before the next band's: a
// large map's projections never exist as a whole.
//
// Either all rows of one or more images, or a slice of one image: some rows of its chunks, with the
// chunks above and below among the keys. A slice's global rows are keys only; what they see of all
// slices is added up from slice to slice.
struct VilBand {
  // Every row but slices' global ones; with separate global projections the local rows. Its row 0
  // is the band's first buffer row.
  VilAttentionPlan attention;
  int64_t row0 = 0;  // First row of the batch; of a slice: the image's first.
  int64_t rows = 0;  // In the buffers; of a slice: globals, then tokens [load_begin, load_end).

  // Bounds of slices, as ranks of local tokens of image `image`.
  int image = -1;  // -1: whole images.
  int64_t load_begin = 0, load_end = 0;
  int64_t begin = 0, end = 0;  // Tokens whose outputs it makes.

  bool is_slice() const { return image >= 0; }
};

struct VilStagePlan {
  std::vector<MapTokens> images;
  int64_t rows = 0;                       // Rows of the batch, globals included.
  std::vector<int32_t> offsets = {0};     // Image i is rows [offsets[i], offsets[i + 1]).
  std::vector<VilBand> bands;             // In the order of their rows; none with long-short.
  VilAttentionPlan globals;               // Global rows, with separate projections only.
  std::vector<LongShortBand> long_short;  // In place of `bands`, with long-short.
  // Biases of long_short's maps; empty without, and for measuring.
  std::vector<std::vector<VilMapEntry>> biases;
  // By image, its absolute positions; empty without, and for measuring.
  std::vector<VilMapEntry> positions;
  int64_t keys = 0;  // Projected keys of all images (Linformer, spatial reduction).

  int64_t band_rows() const;  // The most of a band.
  bool has_slices() const;
};

// `measure`: only sizes are wanted, neither biases nor positions. Thread-safe.
VilStagePlan PlanVilStage(const VilContext& context, size_t stage, std::span<const ImageSize> maps,
                          bool measure);

// Cuts the images of a stage with chunked attention into bands and plans each band's attention:
// fills bands and globals of a plan whose images are placed.
void PlanChunkBands(const VilContext& context, size_t stage, bool measure, VilStagePlan& plan);

// Keys that an image's tokens attend to in a stage with projected keys; 0 elsewhere.
int64_t ProjectedKeys(const VilStage& stage, ImageSize map);

// Long-short attention of a stage.
LongShortPattern LongShortOf(const VilStage& stage);

// Biases of a map of this size: columns of the learned table, and whether that is another size's.
int64_t LearnedEntries(const VilStage& stage, ImageSize map);
bool ResizesTable(const VilStage& stage, ImageSize map);

// Positions of a map and, where ResizesTable, the whole tables learned for its size.
VilMapEntry VilPlacesOf(const VilContext& context, size_t stage, ImageSize map);

// `whole.tokens` of these images with joined tables.
std::shared_ptr<const VilPlan> JoinedTokens(const VilContext& context, size_t stage,
                                            std::span<const MapTokens> images,
                                            const LongShortPlan& whole);

// The weights of maps of these sizes. `bias_rows`: of every size, empty without biases.
std::vector<VilMapEntry> VilMapsOf(const VilContext& context, size_t stage,
                                   std::span<const ImageSize> sizes,
                                   std::span<const std::vector<int32_t>> bias_rows);

}  // namespace longview::models
