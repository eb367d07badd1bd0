#include "models/cvt_ls/buffers.h"

#include <algorithm>
#include <cmath>

#include "models/layers/span_rows.h"

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

CvtStagePlan PlanCvtStage(const CvtContext& context, size_t index,
                          std::span<const ImageSize> maps) {
  const CvtStage& stage = context.config->stages[index];
  const LongShortPattern pattern = LongShortOf(*context.config, stage);
  CvtStagePlan plan;
  std::vector<kernels::WindowImage> images;
  int32_t rows = 0;
  for (const ImageSize map : maps) {
    const int image = static_cast<int>(plan.images.size());
    plan.images.push_back(PlaceTokens(map, pattern.class_tokens, std::max(stage.window, 1), rows));
    images.push_back({rows, map.height, map.width});
    rows += pattern.class_tokens + map.height * map.width;
    plan.places.resize(rows, {image, -1, -1});
    const MapTokens& tokens = plan.images.back();
    for (int64_t i = 0; i < tokens.count(); ++i) {
      const auto position = static_cast<int>(i);
      plan.places[tokens.row0 + tokens.place[i]] = {image, position / map.width,
                                                    position % map.width};
    }
  }
  plan.attention = PlanLongShort(pattern, images, context.tile_rows(), false);
  return plan;
}

CvtBuffers CarveCvtBuffers(const CvtContext& context, std::span<const CvtStagePlan> plans,
                           Carver& carver) {
  const CvtConfig& config = *context.config;
  int64_t residual[2] = {}, panel = 0, rows = 0, qkv = 0, scores = 0, channels = 3;
  size_t workspace = 0, long_short = 0;
  for (size_t s = 0; s < plans.size(); ++s) {
    const CvtStage& stage = config.stages[s];
    const LongShortPattern pattern = LongShortOf(config, stage);
    const int64_t d = stage.width, count = plans[s].rows();
    const int64_t kernel = kCvtEmbeddings[s].kernel;
    residual[s % 2] = std::max(residual[s % 2], count * d);
    panel = std::max({panel, channels * kernel * kernel, d});
    rows = std::max(rows, (count + kPanelRows) * d);
    qkv = std::max(qkv, count * 3 * d);
    scores = std::max(scores, count * stage.columns());
    long_short = std::max(long_short, LongShortBytes(pattern, plans[s].attention, context));
    workspace = std::max(workspace, LongShortWorkspace(pattern, plans[s].attention, context));
    channels = d;
  }
  const int64_t element = ElementBytes(context.compute);
  const auto take = [&](int64_t count) {
    return carver.TakeBytes(static_cast<size_t>(count * element));
  };
  CvtBuffers b;
  b.x[0] = carver.Take<float>(residual[0]);
  b.x[1] = carver.Take<float>(residual[1]);
  b.panel = take(kPanelRows * panel);
  b.rows = take(rows);
  b.qkv = take(qkv);
  b.scores = carver.Take<float>(scores);
  b.value_scores = carver.Take<float>(config.shared_landmarks ? 0 : scores);
  b.long_short = carver.TakeBytes(long_short);
  b.workspace = carver.TakeBytes(workspace);
  return b;
}

}  // namespace longview::models
