#include "models/vil/batch.h"

#include <algorithm>
#include <cstring>

#include "models/layers/map_rows.h"
#include "models/vil/block.h"

namespace longview::models {

VilBatch::VilBatch(const VilContext& context, std::span<const VisionInput> inputs,
                   ScratchKeeper& scratch, EncoderTimes* times)
    : StagedBatch(inputs, scratch, times),
      context_(context),
      kernels_(ChooseRowKernels(context.compute)) {}

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

// The patch of a token, in the order of the weight's columns.
void VilBatch::GatherPatch(TokenFinder::Place place, std::byte* to) const {
  const int p = context_.config->stages[stage()].patch;
  const Taps taps{place.y * p, place.x * p, p};
  if (stage() == 0) {
    GatherPixels(pixels(place.image), taps, context_.compute, to);
    return;
  }
  const size_t before = stage() - 1;
  GatherRows(buffers_.stages[before].x, context_.config->stages[before].width,
             plans_[before].images[place.image], taps, context_.compute, to);
}

void VilBatch::EmbedGlobals(const MapTokens& image) {
  const VilStage& stage = context_.config->stages[this->stage()];
  const VilStageWeights& weights = context_.weights->stages[this->stage()];
  float* x = buffers_.stages[this->stage()].x + int64_t{image.row0} * stage.width;
  for (size_t i = 0; i < weights.class_tokens.size(); ++i) {
    x[i] = weights.class_tokens[i] + (stage.absolute ? weights.class_positions[i] : 0);
  }
}

void VilBatch::PlaceRow(TokenFinder::Place place, const void* y) const {
  const VilStageWeights& weights = context_.weights->stages[stage()];
  const VilStagePlan& plan = plans_[stage()];
  const MapTokens& image = plan.images[place.image];
  const int64_t d = weights.patch->out();
  const int64_t row = image.row0 + image.place[int64_t{place.y} * image.map.width + place.x];
  float* x = buffers_.stages[stage()].x + row * d;
  if (context_.config->norm_embed) {
    std::fill_n(x, d, 0.0f);
    kernels_.residual_norm(x, y, weights.patch->bias.data(), weights.patch_norm.view(), d, nullptr);
  } else {
    kernels_.bias_widen(y, weights.patch->bias.data(), d, x);
  }
  if (!context_.config->stages[stage()].absolute) return;
  const int64_t half = d / 2;
  const VilMapWeights& map = *plan.maps[image.size];
  const float* down = map.row_positions.data() + place.y * half;
  const float* across = map.column_positions.data() + place.x * half;
  for (int64_t i = 0; i < half; ++i) {
    x[i] += down[i];
    x[half + i] += across[i];
  }
}

void VilBatch::Embed() {
  const VilStagePlan& plan = plans_[stage()];
  const DenseLayer& patch = *context_.weights->stages[stage()].patch;
  for (const MapTokens& image : plan.images) EmbedGlobals(image);
  const TokenFinder finder(plan.images);
  const int64_t out_bytes = patch.out() * ElementBytes(context_.compute);
  const PanelContext panels{context_.pool, buffers_.panel, times()};
  ForEachGatheredPanel(
      patch, patch.linear.sizes(), finder.tokens(), panels,
      [&](int64_t token, std::byte* to) { GatherPatch(finder.Find(token), to); },
      [&](int64_t token, int64_t count, int, const std::byte* y) {
        panels.Each(count, [&](long i) { PlaceRow(finder.Find(token + i), y + i * out_bytes); });
      });
  // Last panels read past the rows: what stands there must not slow arithmetic down.
  std::memset(buffers_.stages[stage()].rows, 0,
              static_cast<size_t>((plan.band_rows() + kPanelRows) * out_bytes));
}

void VilBatch::RunBlock() {
  RunVilBlock(context_, stage(), block(), plans_[stage()], buffers_.stages[stage()], times());
}

StagedBatch::Rows VilBatch::RowsOf(int member) const {
  return {buffers_.stages[stage()].x, context_.config->stages[stage()].width,
          &plans_[stage()].images[member]};
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

std::vector<float> VilBatch::Logits(int i) const {
  const DenseLayer& head = *context_.weights->head;
  std::vector<float> logits(head.out());
  const std::vector<float> feature = Embedding(i);
  const float* const rows[] = {feature.data()};
  ApplyToRows(head, rows, Activation::kNone, *context_.pool, logits.data());
  return logits;
}

}  // namespace longview::models
