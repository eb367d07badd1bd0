#include "models/cvt_ls/buffers.h"

#include <algorithm>
#include <cmath>

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

// By row of an image; see CvtStagePlan.
std::vector<int32_t> PositionsOf(const MapTokens& image) {
  std::vector<int32_t> positions(image.rows, -1);
  const auto count = static_cast<int32_t>(image.count());
  for (int32_t i = 0; i < count; ++i) positions[(*image.places)[i]] = i;
  return positions;
}

}  // namespace

TokenFinder::Place CvtStagePlan::PlaceOf(int64_t row) const {
  const auto next =
      std::upper_bound(images.begin(), images.end(), row,
                       [](int64_t at, const MapTokens& image) { return at < image.row0; });
  const auto image = static_cast<int>(next - images.begin()) - 1;
  const int32_t position = (*positions[image])[row - images[image].row0];
  if (position < 0) return {image, -1, -1};
  return {image, position / images[image].map.width, position % images[image].map.width};
}

CvtStagePlan PlanCvtStage(const CvtContext& context, size_t index,
                          std::span<const ImageSize> maps) {
  const CvtConfig& config = *context.config;
  const CvtStage& stage = config.stages[index];
  const LongShortPattern pattern = LongShortOf(config, stage);
  CvtStagePlan plan;
  plan.images =
      PlaceImages(*context.shapes, index, maps, pattern.class_tokens, std::max(stage.window, 1));
  for (const MapTokens& image : plan.images) {
    plan.rows += image.rows;
    plan.positions.push_back(context.shapes->Of<std::vector<int32_t>>(
        ShapeKey(ShapeKind::kTokenPositions, index, {&image.map, 1}),
        [&] { return PositionsOf(image); }));
  }
  LongShortCuts cuts = context.cuts;
  // Landmarks made from keys would need two rounds of neighbours.
  cuts.never = config.landmarks_from_keys;
  plan.bands = PlanLongShortBands(pattern, cuts, index, config.stride(index) / config.stride(0),
                                  context.tile_rows(), plan.images, *context.shapes);
  return plan;
}

CvtBuffers CarveCvtStage(const CvtContext& context, size_t index, const CvtStagePlan& plan,
                         Carver& carver) {
  const CvtConfig& config = *context.config;
  const CvtStage& stage = config.stages[index];
  const LongShortSizes sizes = MeasureLongShort(LongShortOf(config, stage), plan.bands,
                                                config.shared_landmarks ? 1 : 2, context);
  // Convolutions read a map row above and below what a slice loads.
  int64_t normed = sizes.whole_rows;
  for (const LongShortBand& band : plan.bands) {
    if (!band.is_large()) continue;
    const int64_t beside = int64_t{2} * std::max(stage.window, 1) * band.map.shapes[0].width;
    normed = std::max(normed, sizes.slice_rows + beside);
  }
  const auto take = [&](int64_t count) {
    return carver.TakeBytes(static_cast<size_t>(count * ElementBytes(context.compute)));
  };
  CvtBuffers b;
  b.rows = take((normed + kPanelRows) * stage.width);
  b.qkv = take(sizes.rows() * 3 * stage.width);
  b.scores = carver.Take<float>(sizes.scores);
  b.value_scores = carver.Take<float>(config.shared_landmarks ? 0 : sizes.scores);
  b.outputs = carver.TakeBytes(sizes.outputs);
  b.long_short = carver.TakeBytes(sizes.landmarks);
  b.workspace = carver.TakeBytes(sizes.workspace);
  return b;
}

}  // namespace longview::models
