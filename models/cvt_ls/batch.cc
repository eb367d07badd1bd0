#include "models/cvt_ls/batch.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "models/cvt_ls/block.h"
#include "models/layers/map_rows.h"

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

// The taps of a token's convolution, in the order of the weight's columns.
void CvtBatch::GatherEmbedding(TokenFinder::Place place, std::byte* to) const {
  const CvtEmbedding conv = kCvtEmbeddings[stage()];
  const Taps taps{place.y * conv.stride - conv.padding(), place.x * conv.stride - conv.padding(),
                  conv.kernel};
  if (stage() == 0) {
    GatherPixels(pixels(place.image), taps, context_.compute, to);
    return;
  }
  const size_t before = stage() - 1;
  GatherRows(buffers_.x[before % 2], context_.config->stages[before].width,
             plans_[before].images[place.image], taps, context_.compute, to);
}

void CvtBatch::Embed() {
  const CvtStagePlan& plan = plans_[stage()];
  const CvtStageWeights& weights = context_.weights->stages[stage()];
  const DenseLayer& embed = *weights.embed;
  const RowKernels& kernels = ChooseRowKernels(context_.compute);
  const int64_t d = embed.out(), out_bytes = d * ElementBytes(context_.compute);
  float* const x = buffers_.x[stage() % 2];
  const TokenFinder finder(plan.images);
  const PanelContext panels{context_.pool, buffers_.panel, times()};
  const auto place = [&](int64_t token, const std::byte* y) {
    const TokenFinder::Place at = finder.Find(token);
    const MapTokens& image = plan.images[at.image];
    float* row = x + (image.row0 + image.place[int64_t{at.y} * image.map.width + at.x]) * d;
    if (context_.config->embed_norm) {
      std::fill_n(row, d, 0.0f);
      kernels.residual_norm(row, y, embed.bias.data(), weights.embed_norm.view(), d, nullptr);
    } else {
      kernels.bias_widen(y, embed.bias.data(), d, row);
    }
  };
  ForEachGatheredPanel(
      embed, embed.linear.sizes(), finder.tokens(), panels,
      [&](int64_t token, std::byte* to) { GatherEmbedding(finder.Find(token), to); },
      [&](int64_t token, int64_t count, int, const std::byte* y) {
        panels.Each(count, [&](long i) { place(token + i, y + i * out_bytes); });
      });
  if (context_.config->stages[stage()].class_token) {
    for (const MapTokens& image : plan.images) {
      std::copy_n(context_.weights->class_token.begin(), d, x + int64_t{image.row0} * d);
    }
  }
  // Last panels read past the rows: what stands there must not slow arithmetic down.
  std::memset(buffers_.rows + plan.rows() * out_bytes, 0,
              static_cast<size_t>(kPanelRows * out_bytes));
}

void CvtBatch::RunBlock() {
  RunCvtBlock(context_, stage(), block(), plans_[stage()], buffers_, times());
}

StagedBatch::Rows CvtBatch::RowsOf(int member) const {
  return {buffers_.x[stage() % 2], context_.config->stages[stage()].width,
          &plans_[stage()].images[member]};
}

// The last norm of the class row, or of the mean over all rows.
std::vector<float> CvtBatch::Feature(int member) const {
  const CvtConfig& config = *context_.config;
  if (config.backbone) return {};
  const CvtStage& stage = config.stages.back();
  const MapTokens& image = plans_.back().images[member];
  const int64_t d = stage.width;
  const float* x = buffers_.x[(kCvtStages - 1) % 2] + int64_t{image.row0} * d;
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

std::vector<float> CvtBatch::Logits(int i) const {
  const DenseLayer& head = *context_.weights->head;
  std::vector<float> logits(head.out());
  const std::vector<float> feature = Embedding(i);
  const float* const rows[] = {feature.data()};
  ApplyToRows(head, rows, Activation::kNone, *context_.pool, logits.data());
  return logits;
}

}  // namespace longview::models
