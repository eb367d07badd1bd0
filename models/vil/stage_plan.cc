#include "models/vil/stage_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "kernels/span/full_planner.h"
#include "kernels/span/map_planner.h"
#include "kernels/span/plan_bytes.h"
#include "models/vil/stored_bias.h"

namespace longview::models {
namespace {

VilPlan PlanFullMaps(const VilContext& context, const VilStage& stage, const BandImages& band) {
  std::vector<kernels::MapImage> images;
  for (const BandImages::Image& image : band.images) {
    images.push_back({image.row0, image.map.height, image.map.width, image.size});
  }
  kernels::MapPlan map = kernels::PlanMap({.heads = stage.heads,
                                           .globals = stage.globals,
                                           .bias = stage.relative_bias(),
                                           .tile_rows = context.tile_rows()},
                                          images);
  return {std::move(map.plan), std::move(map.bias_rows)};
}

// Every token of an image sees all its projected keys.
VilPlan PlanProjected(const VilContext& context, const VilStage& stage, const BandImages& band) {
  std::vector<kernels::FullSequence> sequences;
  int32_t key0 = 0;
  for (const BandImages::Image& image : band.images) {
    const auto keys = static_cast<int32_t>(ProjectedKeys(stage, image.map));
    kernels::FullSequence sequence;
    sequence.query_row0 = image.row0;
    sequence.queries = stage.globals + image.map.height * image.map.width;
    sequence.key_row0 = key0;
    sequence.keys = keys;
    sequences.push_back(sequence);
    key0 += keys;
  }
  return {PlanFull({.heads = stage.heads, .tile_rows = context.tile_rows()}, sequences), {}};
}

// Attention over whole maps, all rows in one band.
VilBand WholeBand(const VilContext& context, size_t index, bool measure,
                  std::span<const MapTokens> images) {
  const VilStage& stage = context.config->stages[index];
  const BandImages placed(images);
  VilBand band;
  band.rows = placed.rows;
  if (stage.attention == VilAttention::kPerformer) return band;
  const auto make = stage.attention == VilAttention::kFull ? PlanFullMaps : PlanProjected;
  band.attention.made =
      context.shapes->Of<VilPlan>(ShapeKey(ShapeKind::kBandPlan, index, placed.maps), [&] {
        VilPlan plan = make(context, stage, placed);
        if (context.on_device()) JoinTables(kGlobalTables, plan);
        return plan;
      });
  band.attention.sizes = placed.sizes;
  if (stage.relative_bias() && !measure) {
    band.attention.maps = VilMapsOf(context, index, placed.sizes, band.attention.made->bias_rows);
  }
  return band;
}

void PlanLongShort(const VilContext& context, size_t index, bool measure, VilStagePlan& plan) {
  const VilConfig& config = *context.config;
  const LongShortPattern pattern = LongShortOf(config.stages[index]);
  const int64_t ratio = config.stride(index) / config.stride(0);
  plan.long_short = PlanLongShortBands(pattern, context.cuts, index, ratio, context.tile_rows(),
                                       plan.images, *context.shapes);
  for (const LongShortBand& band : plan.long_short) {
    std::vector<VilMapEntry>& biases = plan.biases.emplace_back();
    if (!pattern.bias || measure) continue;
    if (!band.is_large()) {
      biases = VilMapsOf(context, index, band.maps, band.whole->bias_rows);
      continue;
    }
    for (size_t i = 0; i < band.shapes.size(); ++i) {
      biases.push_back(VilMapsOf(context, index, {&band.maps[i], 1}, band.shapes[i]->bias_rows)[0]);
    }
  }
}

}  // namespace

size_t BytesOf(const VilPlan& plan) {
  return kernels::BytesOf(plan.plan) + BytesOf(plan.bias_rows);
}

void JoinTables(int32_t first, VilPlan& plan) {
  std::vector<int32_t> begins = {0};
  for (const std::vector<int32_t>& rows : plan.bias_rows) {
    begins.push_back(begins.back() + static_cast<int32_t>(rows.size()));
  }
  for (kernels::Bias& bias : plan.plan.biases) {
    if (bias.id < first) continue;
    bias.base += begins[bias.id - first];
    bias.id = first;
  }
}

bool ResizesTable(const VilStage& stage, ImageSize map) {
  return stage.attention == VilAttention::kFull && stage.relative_bias() && map != stage.map;
}

int64_t LearnedEntries(const VilStage& stage, ImageSize map) {
  if (!ResizesTable(stage, map)) return StoredBias(stage).entries;
  return int64_t{2 * map.height - 1} * (2 * map.width - 1);
}

VilMapEntry VilPlacesOf(const VilContext& context, size_t index, ImageSize map) {
  std::vector<std::vector<int32_t>> all(1);
  const VilStage& stage = context.config->stages[index];
  if (ResizesTable(stage, map)) {
    all[0].resize(static_cast<size_t>(LearnedEntries(stage, map)));
    std::iota(all[0].begin(), all[0].end(), 0);
  }
  return VilMapsOf(context, index, {&map, 1}, all)[0];
}

std::shared_ptr<const VilPlan> JoinedTokens(const VilContext& context, size_t index,
                                            std::span<const MapTokens> images,
                                            const LongShortPlan& whole) {
  std::vector<ImageSize> maps;
  for (const MapTokens& image : images) maps.push_back(image.map);
  return context.shapes->Of<VilPlan>(ShapeKey(ShapeKind::kJoinedPlan, index, maps), [&] {
    VilPlan plan{whole.tokens, whole.bias_rows};
    JoinTables(0, plan);
    return plan;
  });
}

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

std::vector<VilMapEntry> VilMapsOf(const VilContext& context, size_t index,
                                   std::span<const ImageSize> sizes,
                                   std::span<const std::vector<int32_t>> bias_rows) {
  const VilStage& stage = context.config->stages[index];
  const bool first_positions = context.config->backbone && !context.config->any_size;
  std::vector<VilMapEntry> entries;
  for (size_t i = 0; i < sizes.size(); ++i) {
    entries.push_back(context.shapes->Of<VilMapWeights>(
        ShapeKey(ShapeKind::kMapWeights, index, {&sizes[i], 1}), [&] {
          const std::vector<int32_t> none;
          return MakeVilMapWeights(stage, context.weights->stages[index], sizes[i], first_positions,
                                   stage.relative_bias() ? bias_rows[i] : none);
        }));
  }
  return entries;
}

VilStagePlan PlanVilStage(const VilContext& context, size_t index, std::span<const ImageSize> maps,
                          bool measure) {
  const VilStage& stage = context.config->stages[index];
  VilStagePlan plan;
  plan.images = PlaceImages(*context.shapes, index, maps, stage.globals, stage.token_square());
  for (const MapTokens& image : plan.images) {
    plan.rows += image.rows;
    plan.offsets.push_back(static_cast<int32_t>(plan.rows));
    plan.keys += ProjectedKeys(stage, image.map);
  }
  if (stage.absolute && !measure) plan.positions = VilMapsOf(context, index, maps, {});
  if (stage.attention == VilAttention::kChunks) {
    PlanChunkBands(context, index, measure, plan);
  } else if (stage.attention == VilAttention::kLongShort) {
    PlanLongShort(context, index, measure, plan);
  } else {
    plan.bands.push_back(WholeBand(context, index, measure, plan.images));
  }
  return plan;
}

}  // namespace longview::models
