#include "models/vil/batch.h"

#include <algorithm>
#include <cstring>

#include "models/vil/block.h"

namespace longview::models {

std::vector<VilStagePlan> VilBatch::MakePlans(const VilContext& context,
                                              std::span<const ImageSize> sizes, bool measure) {
  const VilConfig& config = *context.config;
  std::vector<std::vector<ImageSize>> maps(config.stages.size());
  for (const ImageSize size : sizes) {
    const std::vector<ImageSize> of_image = *VilMaps(config, size);
    for (size_t s = 0; s < maps.size(); ++s) maps[s].push_back(of_image[s]);
  }
  std::vector<VilStagePlan> plans;
  for (size_t s = 0; s < maps.size(); ++s) {
    plans.push_back(PlanVilStage(context, s, maps[s], measure));
  }
  return plans;
}

size_t VilBatch::ScratchBytes(const VilContext& context, std::span<const ImageSize> sizes) {
  const std::vector<VilStagePlan> plans = MakePlans(context, sizes, true);
  Carver carver(nullptr);
  CarveVilBuffers(context, plans, carver);
  return carver.used();
}

void VilBatch::Plan(std::span<const ImageSize> sizes) {
  plans_ = MakePlans(context_, sizes, false);
}

void VilBatch::Carve(Carver& carver) { buffers_ = CarveVilBuffers(context_, plans_, carver); }

StagedBatch::Stream VilBatch::StreamOf(size_t stage) const {
  return {buffers_.stages[stage].x, context_.config->stages[stage].width, plans_[stage].images};
}

StagedBatch::TokenMaker VilBatch::Tokens() const {
  const VilStageWeights& weights = context_.weights->stages[stage()];
  const int patch = context_.config->stages[stage()].patch;
  const Norm* norm = context_.config->norm_embed ? &weights.patch_norm : nullptr;
  return {&*weights.patch, norm, patch, patch, 0, buffers_.panel};
}

void VilBatch::AddPlace(TokenFinder::Place place, float* token) const {
  const VilStage& stage = context_.config->stages[this->stage()];
  if (!stage.absolute) return;
  const VilStagePlan& plan = plans_[this->stage()];
  const int64_t half = stage.width / 2;
  const VilMapWeights& map = *plan.maps[plan.images[place.image].size];
  const float* down = map.row_positions.data() + place.y * half;
  const float* across = map.column_positions.data() + place.x * half;
  for (int64_t i = 0; i < half; ++i) {
    token[i] += down[i];
    token[half + i] += across[i];
  }
}

void VilBatch::EnterStage() {
  const VilStage& stage = context_.config->stages[this->stage()];
  const VilStageWeights& weights = context_.weights->stages[this->stage()];
  const VilStagePlan& plan = plans_[this->stage()];
  const VilBuffers& buffers = buffers_.stages[this->stage()];
  for (const MapTokens& image : plan.images) {
    float* x = buffers.x + int64_t{image.row0} * stage.width;
    for (size_t i = 0; i < weights.class_tokens.size(); ++i) {
      x[i] = weights.class_tokens[i] + (stage.absolute ? weights.class_positions[i] : 0);
    }
  }
  // Last panels read past the rows: what stands there must not slow arithmetic down.
  const int64_t row_bytes = stage.width * ElementBytes(context_.compute);
  std::memset(buffers.rows, 0, static_cast<size_t>((plan.band_rows() + kPanelRows) * row_bytes));
}

void VilBatch::RunBlock() {
  RunVilBlock(context_, stage(), block(), plans_[stage()], buffers_.stages[stage()], times());
}

// After the last norm: the first global token, or the mean over all tokens in row order.
std::vector<float> VilBatch::Feature(int member) const {
  const VilConfig& config = *context_.config;
  if (config.backbone) return {};
  const VilStage& stage = config.stages.back();
  const MapTokens& image = plans_.back().images[member];
  const int64_t d = stage.width;
  const float* x = buffers_.stages.back().x + image.row0 * d;
  const RowKernels& floats = ChooseRowKernels(Compute::kFp32);
  const NormWeights norm = context_.weights->norm.view();
  std::vector<float> feature(d);
  if (config.reads_class_token()) {
    floats.norm(x, norm, d, feature.data());
    return feature;
  }
  // Row-major over the map whatever order the tokens lie in.
  std::vector<float> row(d);
  std::vector<double> sum(d);
  const auto add = [&](int64_t place) {
    floats.norm(x + place * d, norm, d, row.data());
    for (int64_t c = 0; c < d; ++c) sum[c] += row[c];
  };
  for (int g = 0; g < stage.globals; ++g) add(g);
  for (const int32_t place : image.place) add(place);
  const auto count = static_cast<double>(stage.globals + image.count());
  for (int64_t c = 0; c < d; ++c) feature[c] = static_cast<float>(sum[c] / count);
  return feature;
}

}  // namespace longview::models
