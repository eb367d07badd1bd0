#include "models/cvt_ls/batch.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "models/cvt_ls/block.h"

namespace longview::models {

std::vector<CvtStagePlan> CvtBatch::MakePlans(const CvtContext& context,
                                              std::span<const ImageSize> sizes) {
  std::array<std::vector<ImageSize>, kCvtStages> maps;
  for (const ImageSize size : sizes) {
    const std::array<ImageSize, kCvtStages> of_image = *CvtMaps(size);
    for (size_t s = 0; s < kCvtStages; ++s) maps[s].push_back(of_image[s]);
  }
  std::vector<CvtStagePlan> plans;
  for (size_t s = 0; s < kCvtStages; ++s) plans.push_back(PlanCvtStage(context, s, maps[s]));
  return plans;
}

size_t CvtBatch::ScratchBytes(const CvtContext& context, std::span<const ImageSize> sizes) {
  Carver carver(nullptr);
  CarveCvtBuffers(context, MakePlans(context, sizes), carver);
  return carver.used();
}

StagedBatch::Stream CvtBatch::StreamOf(size_t stage) const {
  return {buffers_[stage].x, context_.config->stages[stage].width, plans_[stage].images};
}

StagedBatch::TokenMaker CvtBatch::Tokens() const {
  const CvtStageWeights& weights = context_.weights->stages[stage()];
  const CvtEmbedding& conv = kCvtEmbeddings[stage()];
  return {&*weights.embed, context_.config->embed_norm ? &weights.embed_norm : nullptr,
          conv.kernel,     conv.stride,
          conv.padding(),  buffers_[stage()].panel};
}

void CvtBatch::EnterStage() {
  const CvtStagePlan& plan = plans_[stage()];
  const CvtStage& config = context_.config->stages[stage()];
  const CvtBuffers& buffers = buffers_[stage()];
  const int64_t d = config.width;
  if (config.class_token) {
    for (const MapTokens& image : plan.images) {
      std::copy_n(context_.weights->class_token.begin(), d, buffers.x + int64_t{image.row0} * d);
    }
  }
  // Last panels read past the rows: what stands there must not slow arithmetic down.
  std::memset(buffers.rows, 0, buffers.qkv - buffers.rows);
}

void CvtBatch::RunBlock() {
  RunCvtBlock(context_, stage(), block(), plans_[stage()], buffers_[stage()], times());
}

// The last norm of the class row, or of the mean over all rows.
std::vector<float> CvtBatch::Feature(int member) const {
  const CvtConfig& config = *context_.config;
  if (config.backbone) return {};
  const CvtStage& stage = config.stages.back();
  const MapTokens& image = plans_.back().images[member];
  const int64_t d = stage.width;
  const float* x = buffers_.back().x + int64_t{image.row0} * d;
  std::vector<float> row(x, x + d);
  if (config.mean_pool) {
    std::vector<double> sum(d);
    const auto add = [&](int64_t place) {
      for (int64_t c = 0; c < d; ++c) sum[c] += x[place * d + c];
    };
    if (stage.class_token) add(0);
    // Row-major over the map whatever order the tokens lie in.
    for (const int32_t place : image.place) add(place);
    const auto count = static_cast<double>(image.count() + (stage.class_token ? 1 : 0));
    for (int64_t c = 0; c < d; ++c) row[c] = static_cast<float>(sum[c] / count);
  }
  std::vector<float> feature(d);
  ChooseRowKernels(Compute::kFp32)
      .norm(row.data(), context_.weights->norm.view(), d, feature.data());
  return feature;
}

}  // namespace longview::models
