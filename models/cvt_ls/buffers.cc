#include "models/cvt_ls/buffers.h"

#include <algorithm>
#include <cmath>

#include "models/layers/span_rows.h"
#include "models/long_short/slice_attention.h"

namespace longview::models {

LongShortPattern LongShortOf(const CvtConfig& config, const CvtStage& stage) {
  LongShortPattern pattern;
  pattern.heads = stage.heads;
  pattern.width = stage.width;
  pattern.ranks = stage.ranks;
  pattern.window = stage.window;
  pattern.class_tokens = stage.class_token ? 1 : 0;
  pattern.class_sees_outputs = config.class_sees_outputs;
  const int width = config.scale_by_width ? stage.width : stage.head_dim();
  pattern.scale = 1.0f / std::sqrt(static_cast<float>(width));
  return pattern;
}

namespace {

CvtBand WholeBand(const LongShortPattern& pattern, std::span<const MapTokens> images,
                  int tile_rows) {
  CvtBand band;
  band.row0 = images.front().row0;
  std::vector<kernels::WindowImage> placed;
  for (const MapTokens& image : images) {
    placed.push_back(
        {static_cast<int32_t>(image.row0 - band.row0), image.map.height, image.map.width});
  }
  band.whole = PlanLongShort(pattern, placed, tile_rows, false);
  band.rows = band.whole.rows();
  return band;
}

CvtBand LargeBand(const LongShortPattern& pattern, const MapTokens& image, int64_t slice_tokens,
                  int tile_rows) {
  CvtBand band;
  band.row0 = image.row0;
  band.rows = pattern.class_tokens + image.count();
  band.map = SliceMap(pattern, image.map.height, image.map.width, slice_tokens);
  for (const LongShortSliceShape& shape : band.map.shapes) {
    band.shapes.push_back(PlanSlice(pattern, shape, tile_rows, false));
  }
  return band;
}

void PlanBands(const CvtContext& context, size_t index, CvtStagePlan& plan) {
  const CvtConfig& config = *context.config;
  const LongShortPattern pattern = LongShortOf(config, config.stages[index]);
  const int tile_rows = context.tile_rows();
  const int64_t ratio = config.stride(index) / config.stride(0);
  // Landmarks made from keys would need two rounds of neighbours.
  const bool can = CanSlice(pattern) && !config.landmarks_from_keys;
  const auto large = [&](const MapTokens& image) {
    return can && image.count() > context.slice_tokens &&
           image.count() * ratio * ratio > context.large_tokens;
  };
  if (std::none_of(plan.images.begin(), plan.images.end(), large)) {
    plan.bands.push_back(WholeBand(pattern, plan.images, tile_rows));
    return;
  }
  for (const MapTokens& image : plan.images) {
    plan.bands.push_back(large(image) ? LargeBand(pattern, image, context.slice_tokens, tile_rows)
                                      : WholeBand(pattern, {&image, 1}, tile_rows));
  }
}

// What attention needs of memory, as maxima over a stage's bands.
struct BandSizes {
  int64_t normed = 0;     // Rows in buffers.rows.
  int64_t projected = 0;  // In buffers.qkv.
  int64_t scores = 0;     // Floats.
  size_t outputs = 0, long_short = 0, workspace = 0;
};

BandSizes SizesOf(const CvtContext& context, size_t index, const CvtStagePlan& plan) {
  const CvtStage& stage = context.config->stages[index];
  const LongShortPattern pattern = LongShortOf(*context.config, stage);
  const auto row = static_cast<size_t>(stage.width * ElementBytes(context.compute));
  BandSizes sizes;
  for (const CvtBand& band : plan.bands) {
    if (!band.is_large()) {
      sizes.normed = std::max(sizes.normed, band.rows);
      sizes.projected = std::max(sizes.projected, band.rows);
      sizes.scores = std::max(sizes.scores, band.rows * stage.columns());
      sizes.long_short = std::max(sizes.long_short, LongShortBytes(pattern, band.whole, context));
      sizes.workspace = std::max(sizes.workspace, LongShortWorkspace(pattern, band.whole, context));
      continue;
    }
    // Convolutions read a map row above and below what a slice loads.
    const int64_t beside = int64_t{2} * std::max(stage.window, 1) * band.map.shapes[0].width;
    sizes.normed = std::max(sizes.normed, band.map.rows(pattern) + beside);
    sizes.projected = std::max(sizes.projected, band.map.rows(pattern));
    const int64_t kinds = context.config->shared_landmarks ? 1 : 2;
    sizes.outputs = std::max({sizes.outputs, (band.rows + kPanelRows) * row,
                              kinds * CvtScores(stage, band) * sizeof(float)});
    sizes.long_short =
        std::max(sizes.long_short, LongShortSliceBytes(pattern, context, band.map.rows(pattern)));
    for (const LongShortPlan& shape : band.shapes) {
      sizes.workspace = std::max(sizes.workspace, LongShortSliceWorkspace(pattern, shape, context));
    }
  }
  return sizes;
}

// All but the residual stream and the panel.
CvtBuffers CarveStage(const CvtContext& context, size_t index, const CvtStagePlan& plan,
                      Carver& carver) {
  const int64_t d = context.config->stages[index].width;
  const BandSizes sizes = SizesOf(context, index, plan);
  const auto take = [&](int64_t count) {
    return carver.TakeBytes(static_cast<size_t>(count * ElementBytes(context.compute)));
  };
  CvtBuffers b;
  b.rows = take((sizes.normed + kPanelRows) * d);
  b.qkv = take(sizes.projected * 3 * d);
  b.scores = carver.Take<float>(sizes.scores);
  b.value_scores = carver.Take<float>(context.config->shared_landmarks ? 0 : sizes.scores);
  b.outputs = carver.TakeBytes(sizes.outputs);
  b.long_short = carver.TakeBytes(sizes.long_short);
  b.workspace = carver.TakeBytes(sizes.workspace);
  return b;
}

}  // namespace

int64_t CvtScores(const CvtStage& stage, const CvtBand& band) {
  return band.map.tokens * stage.columns();
}

CvtStagePlan PlanCvtStage(const CvtContext& context, size_t index,
                          std::span<const ImageSize> maps) {
  const CvtStage& stage = context.config->stages[index];
  const int class_tokens = stage.class_token ? 1 : 0;
  CvtStagePlan plan;
  int32_t rows = 0;
  for (const ImageSize map : maps) {
    const int image = static_cast<int>(plan.images.size());
    plan.images.push_back(PlaceTokens(map, class_tokens, std::max(stage.window, 1), rows));
    rows += class_tokens + map.height * map.width;
    plan.places.resize(rows, {image, -1, -1});
    const MapTokens& tokens = plan.images.back();
    for (int64_t i = 0; i < tokens.count(); ++i) {
      const auto position = static_cast<int>(i);
      plan.places[tokens.row0 + tokens.place[i]] = {image, position / map.width,
                                                    position % map.width};
    }
  }
  PlanBands(context, index, plan);
  return plan;
}

// Residual streams of even stages lie at the front of the block, of odd ones at its end; what a
// stage works with lies between its stream and the other end.
std::vector<CvtBuffers> CarveCvtBuffers(const CvtContext& context,
                                        std::span<const CvtStagePlan> plans, Carver& carver) {
  const CvtConfig& config = *context.config;
  int64_t panel = 0, channels = 3;
  size_t total = 0;
  std::vector<size_t> streams;
  for (size_t s = 0; s < plans.size(); ++s) {
    const int64_t d = config.stages[s].width, kernel = kCvtEmbeddings[s].kernel;
    panel = std::max({panel, channels * kernel * kernel, d});
    streams.push_back(kernels::AlignUp(static_cast<size_t>(plans[s].rows() * d) * sizeof(float)));
    Carver measure(nullptr);
    CarveStage(context, s, plans[s], measure);
    total = std::max(total, streams[s] + measure.used());
    if (s > 0) total = std::max(total, streams[s - 1] + streams[s]);
    channels = d;
  }
  std::byte* const gathered =
      carver.TakeBytes(static_cast<size_t>(kPanelRows * panel * ElementBytes(context.compute)));
  std::byte* const base = carver.TakeBytes(total);
  std::vector<CvtBuffers> stages;
  for (size_t s = 0; base != nullptr && s < plans.size(); ++s) {
    Carver rest(s % 2 == 0 ? base + streams[s] : base);
    CvtBuffers& stage = stages.emplace_back(CarveStage(context, s, plans[s], rest));
    stage.x = reinterpret_cast<float*>(s % 2 == 0 ? base : base + total - streams[s]);
    stage.panel = gathered;
  }
  return stages;
}

}  // namespace longview::models
