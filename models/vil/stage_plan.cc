#include "models/vil/stage_plan.h"

#include <numeric>
#include <utility>

#include "kernels/span/chunk_grid_planner.h"
#include "kernels/span/chunk_map.h"
#include "kernels/span/executor.h"
#include "kernels/span/full_planner.h"
#include "kernels/span/map_planner.h"

namespace longview::models {
namespace {

using kernels::ChunkPattern;

VilTokens PlaceTokens(const VilStage& stage, ImageSize map, int32_t row0) {
  VilTokens tokens{map, row0, {}};
  const int32_t count = map.height * map.width;
  tokens.place.resize(count);
  if (stage.attention != VilAttention::kChunks) {
    std::iota(tokens.place.begin(), tokens.place.end(), stage.globals);
    return tokens;
  }
  const std::vector<int32_t> order =
      kernels::ChunkMap(map.height, map.width, stage.features).Order();
  for (int32_t rank = 0; rank < count; ++rank) tokens.place[order[rank]] = stage.globals + rank;
  return tokens;
}

// [heads, entries] of the learned table [heads, learned].
std::vector<float> Expanded(const std::vector<float>& learned, int heads,
                            const std::vector<int32_t>& rows) {
  const size_t width = learned.size() / heads;
  std::vector<float> table;
  table.reserve(rows.size() * heads);
  for (int h = 0; h < heads; ++h) {
    for (const int32_t row : rows) table.push_back(learned[h * width + row]);
  }
  return table;
}

void PlanChunks(const VilConfig& config, const VilStage& stage, const VilStageWeights& weights,
                int tile_rows, bool expand, VilStagePlan& plan) {
  std::vector<kernels::ChunkImage> images;
  for (const VilTokens& image : plan.images) {
    images.push_back({image.row0, image.map.height, image.map.width});
  }
  ChunkPattern pattern;
  pattern.heads = stage.heads;
  pattern.chunk = stage.features;
  pattern.globals = stage.globals;
  pattern.rule = config.exactness == 0  ? kernels::ChunkRule::kChunks
                 : config.exactness > 0 ? kernels::ChunkRule::kExact
                                        : kernels::ChunkRule::kCyclic;
  pattern.own_chunk_only = config.own_chunk_only;
  pattern.only_global = config.only_global;
  pattern.bias = stage.relative_bias();
  pattern.tile_rows = tile_rows;
  const bool separate = stage.globals > 0 && !config.share_w;
  pattern.global_rows = stage.globals > 0 && !separate;
  kernels::ChunkGridPlan grid = PlanChunkGrid(pattern, images);
  plan.attention = std::move(grid.plan);
  plan.table_entries = static_cast<int32_t>(grid.bias_rows.size());
  if (expand && pattern.bias) {
    for (const VilBlock& block : weights.blocks) {
      plan.tables.push_back(Expanded(block.bias.local, stage.heads, grid.bias_rows));
    }
  }
  if (!separate) return;
  pattern.global_rows = true;
  pattern.local_rows = false;
  plan.globals = PlanChunkGrid(pattern, images).plan;
}

// Every token of an image sees all its projected keys.
kernels::Plan PlanProjected(const VilStage& stage, const VilStagePlan& plan, int tile_rows) {
  std::vector<kernels::FullSequence> sequences;
  int32_t key0 = 0;
  for (const VilTokens& image : plan.images) {
    const auto keys = static_cast<int32_t>(ProjectedKeys(stage, image.map));
    kernels::FullSequence sequence;
    sequence.query_row0 = image.row0;
    sequence.queries = stage.globals + image.map.height * image.map.width;
    sequence.key_row0 = key0;
    sequence.keys = keys;
    sequences.push_back(sequence);
    key0 += keys;
  }
  return PlanFull({.heads = stage.heads, .tile_rows = tile_rows}, sequences);
}

}  // namespace

int64_t ProjectedKeys(const VilStage& stage, ImageSize map) {
  if (stage.attention == VilAttention::kLinformer) return stage.features;
  if (stage.attention != VilAttention::kReduction) return 0;
  return stage.globals + int64_t{map.height / stage.features} * (map.width / stage.features);
}

VilStagePlan PlanVilStage(const VilConfig& config, const VilStage& stage,
                          const VilStageWeights& weights, std::span<const ImageSize> maps,
                          kernels::Isa isa, bool expand) {
  VilStagePlan plan;
  for (const ImageSize map : maps) {
    plan.images.push_back(PlaceTokens(stage, map, static_cast<int32_t>(plan.rows)));
    plan.rows += stage.globals + int64_t{map.height} * map.width;
    plan.offsets.push_back(static_cast<int32_t>(plan.rows));
    plan.keys += ProjectedKeys(stage, map);
  }
  const int tile_rows = kernels::TileRows(isa);
  switch (stage.attention) {
    case VilAttention::kChunks:
      PlanChunks(config, stage, weights, tile_rows, expand, plan);
      break;
    case VilAttention::kFull: {
      // Positions fix the map, so all images have the same one.
      std::vector<int32_t> row0;
      for (const VilTokens& image : plan.images) row0.push_back(image.row0);
      plan.attention = kernels::PlanMap({.heads = stage.heads,
                                         .globals = stage.globals,
                                         .rows = plan.images[0].map.height,
                                         .cols = plan.images[0].map.width,
                                         .bias = stage.relative_bias(),
                                         .tile_rows = tile_rows},
                                        row0);
      break;
    }
    case VilAttention::kLinformer:
    case VilAttention::kReduction:
      plan.attention = PlanProjected(stage, plan, tile_rows);
      break;
    case VilAttention::kPerformer:
      break;
  }
  return plan;
}

}  // namespace longview::models
