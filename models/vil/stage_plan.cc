#include "models/vil/stage_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/span/chunk_grid_planner.h"
#include "kernels/span/executor.h"
#include "kernels/span/full_planner.h"
#include "kernels/span/map_planner.h"
#include "models/layers/span_rows.h"

namespace longview::models {
namespace {

using BiasRows = std::vector<std::vector<int32_t>>;  // By map size.

// One stage's plans; each function returns the bias rows, empty unless `list_bias`.
class Planner {
 public:
  Planner(const VilConfig& config, const VilStage& stage, int tile_rows, bool list_bias,
          VilStagePlan& plan)
      : config_(config), stage_(stage), tile_rows_(tile_rows), list_bias_(list_bias), plan_(plan) {}

  BiasRows Run() {
    switch (stage_.attention) {
      case VilAttention::kChunks:
        return Chunks();
      case VilAttention::kFull:
        return Full();
      case VilAttention::kLongShort:
        return LongShort();
      case VilAttention::kLinformer:
      case VilAttention::kReduction:
        Projected();
        return {};
      case VilAttention::kPerformer:
        return {};
    }
    return {};
  }

 private:
  BiasRows Chunks() {
    std::vector<kernels::ChunkImage> images;
    for (const MapTokens& image : plan_.images) {
      images.push_back({image.row0, image.map.height, image.map.width, image.size});
    }
    kernels::ChunkPattern pattern;
    pattern.heads = stage_.heads;
    pattern.chunk = stage_.features;
    pattern.globals = stage_.globals;
    pattern.rule = config_.exactness == 0  ? kernels::ChunkRule::kChunks
                   : config_.exactness > 0 ? kernels::ChunkRule::kExact
                                           : kernels::ChunkRule::kCyclic;
    pattern.own_chunk_only = config_.own_chunk_only;
    pattern.only_global = config_.only_global;
    pattern.bias = stage_.relative_bias();
    pattern.list_bias_rows = list_bias_;
    pattern.tile_rows = tile_rows_;
    const bool separate = stage_.globals > 0 && !config_.share_w;
    pattern.global_rows = stage_.globals > 0 && !separate;
    kernels::ChunkGridPlan grid = PlanChunkGrid(pattern, images);
    plan_.attention = std::move(grid.plan);
    if (separate) {
      pattern.global_rows = true;
      pattern.local_rows = false;
      plan_.globals = PlanChunkGrid(pattern, images).plan;
    }
    return std::move(grid.bias_rows);
  }

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
    plan_.attention = std::move(map.plan);
    return std::move(map.bias_rows);
  }

  BiasRows LongShort() {
    std::vector<kernels::WindowImage> images;
    for (const MapTokens& image : plan_.images) {
      images.push_back({image.row0, image.map.height, image.map.width, 0, 0, image.size});
    }
    plan_.long_short = PlanLongShort(LongShortOf(stage_), images, tile_rows_, list_bias_);
    return plan_.long_short.bias_rows;
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
    plan_.attention = PlanFull({.heads = stage_.heads, .tile_rows = tile_rows_}, sequences);
  }

  const VilConfig& config_;
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
  bool list_bias = false;
  if (!measure && (stage.absolute || stage.relative_bias())) {
    for (const ImageSize size : sizes) plan.maps.push_back(context.maps->Find(index, size));
    list_bias = std::count(plan.maps.begin(), plan.maps.end(), nullptr) > 0;
  }
  const int tile_rows =
      kernels::TileRows(kernels::EffectiveIsa(context.isa, SpanType(context.compute)));
  const BiasRows rows = Planner(*context.config, stage, tile_rows, list_bias, plan).Run();
  const bool first_positions = context.config->backbone && !context.config->any_size;
  for (size_t i = 0; i < plan.maps.size(); ++i) {
    if (plan.maps[i] != nullptr) continue;
    const std::vector<int32_t> none;
    plan.maps[i] = context.maps->Add(
        index, sizes[i],
        MakeVilMapWeights(stage, context.weights->stages[index], sizes[i], first_positions,
                          stage.relative_bias() ? rows[i] : none));
  }
  return plan;
}

}  // namespace longview::models
