#include "models/vil/stage_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/span/executor.h"
#include "kernels/span/full_planner.h"
#include "kernels/span/map_planner.h"
#include "models/layers/span_rows.h"
#include "models/vil/chunk_bands.h"
#include "models/vil/long_short_bands.h"

namespace longview::models {
namespace {

using BiasRows = std::vector<std::vector<int32_t>>;  // By map size.

// Attentions over whole maps, all rows in one band; each function returns the bias rows, empty
// unless `list_bias`.
class Planner {
 public:
  Planner(const VilStage& stage, int tile_rows, bool list_bias, VilStagePlan& plan)
      : stage_(stage), tile_rows_(tile_rows), list_bias_(list_bias), plan_(plan) {}

  BiasRows Run() {
    VilBand& band = plan_.bands.emplace_back();
    band.rows = plan_.rows;
    switch (stage_.attention) {
      case VilAttention::kFull:
        return Full();
      case VilAttention::kLinformer:
      case VilAttention::kReduction:
        Projected();
        return {};
      default:
        return {};
    }
  }

 private:
  BiasRows Full() {
    std::vector<kernels::MapImage> images;
    for (const MapTokens& image : plan_.images) {
      images.push_back({image.row0, image.map.height, image.map.width, image.size});
    }
    kernels::MapPlan map = kernels::PlanMap({.heads = stage_.heads,
                                             .globals = stage_.globals,
                                             .bias = stage_.relative_bias(),
                                             .list_bias_rows = list_bias_,
                                             .tile_rows = tile_rows_},
                                            images);
    plan_.attention.emplace_back().plan = std::move(map.plan);
    return std::move(map.bias_rows);
  }

  // Every token of an image sees all its projected keys.
  void Projected() {
    std::vector<kernels::FullSequence> sequences;
    int32_t key0 = 0;
    for (const MapTokens& image : plan_.images) {
      const auto keys = static_cast<int32_t>(ProjectedKeys(stage_, image.map));
      kernels::FullSequence sequence;
      sequence.query_row0 = image.row0;
      sequence.queries = stage_.globals + image.map.height * image.map.width;
      sequence.key_row0 = key0;
      sequence.keys = keys;
      sequences.push_back(sequence);
      key0 += keys;
    }
    plan_.attention.emplace_back().plan =
        PlanFull({.heads = stage_.heads, .tile_rows = tile_rows_}, sequences);
  }

  const VilStage& stage_;
  const int tile_rows_;
  const bool list_bias_;
  VilStagePlan& plan_;
};

}  // namespace

int64_t ProjectedKeys(const VilStage& stage, ImageSize map) {
  if (stage.attention == VilAttention::kLinformer) return stage.features;
  if (stage.attention != VilAttention::kReduction) return 0;
  return stage.globals + int64_t{map.height / stage.features} * (map.width / stage.features);
}

LongShortPattern LongShortOf(const VilStage& stage) {
  LongShortPattern pattern;
  pattern.heads = stage.heads;
  pattern.width = stage.width;
  pattern.ranks = stage.ranks;
  pattern.window = stage.features;
  pattern.class_tokens = stage.globals;
  pattern.bias = stage.relative_bias();
  pattern.scale = 1.0f / std::sqrt(static_cast<float>(stage.head_dim()));
  return pattern;
}

int64_t VilStagePlan::band_rows() const {
  int64_t most = 0;
  for (const VilBand& band : bands) most = std::max(most, band.rows);
  return most;
}

bool VilStagePlan::has_slices() const {
  return std::any_of(bands.begin(), bands.end(), [](const VilBand& b) { return b.is_slice(); });
}

std::vector<VilMapCache::Entry> FindVilMaps(const VilContext& context, size_t stage,
                                            std::span<const ImageSize> sizes) {
  std::vector<VilMapCache::Entry> entries;
  for (const ImageSize size : sizes) entries.push_back(context.maps->Find(stage, size));
  return entries;
}

void AddVilMaps(const VilContext& context, size_t index, std::span<const ImageSize> sizes,
                std::span<const std::vector<int32_t>> bias_rows,
                std::vector<VilMapCache::Entry>& entries) {
  const VilStage& stage = context.config->stages[index];
  const bool first_positions = context.config->backbone && !context.config->any_size;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i] != nullptr) continue;
    const std::vector<int32_t> none;
    entries[i] = context.maps->Add(
        index, sizes[i],
        MakeVilMapWeights(stage, context.weights->stages[index], sizes[i], first_positions,
                          stage.relative_bias() ? bias_rows[i] : none));
  }
}

VilStagePlan PlanVilStage(const VilContext& context, size_t index, std::span<const ImageSize> maps,
                          bool measure) {
  const VilStage& stage = context.config->stages[index];
  VilStagePlan plan;
  for (const ImageSize map : maps) {
    plan.images.push_back(
        PlaceTokens(map, stage.globals, stage.token_square(), static_cast<int32_t>(plan.rows)));
    plan.rows += stage.globals + int64_t{map.height} * map.width;
    plan.offsets.push_back(static_cast<int32_t>(plan.rows));
    plan.keys += ProjectedKeys(stage, map);
  }
  const std::vector<ImageSize> sizes = NumberSizes(plan.images);
  const bool full = stage.attention == VilAttention::kFull;
  if (!measure && (stage.absolute || (stage.relative_bias() && full))) {
    plan.maps = FindVilMaps(context, index, sizes);
  }
  const bool list_bias = std::count(plan.maps.begin(), plan.maps.end(), nullptr) > 0;
  const int tile_rows = context.tile_rows();
  BiasRows rows;
  if (stage.attention == VilAttention::kChunks) {
    PlanChunkBands(context, index, tile_rows, measure, plan);
  } else if (stage.attention == VilAttention::kLongShort) {
    PlanLongShortBands(context, index, tile_rows, measure, plan);
  } else {
    rows = Planner(stage, tile_rows, list_bias, plan).Run();
  }
  AddVilMaps(context, index, sizes, rows, plan.maps);
  if (full) plan.attention[0].maps = plan.maps;
  return plan;
}

}  // namespace longview::models
