#include "models/vil/batch.h"

#include <algorithm>
#include <cstring>

#include "models/layers/map_rows.h"
#include "models/vil/block.h"

namespace longview::models {

VilBatch::VilBatch(const VilContext& context, std::span<const VisionInput> inputs,
                   ScratchKeeper& scratch, EncoderTimes* times)
    : context_(context),
      kernels_(ChooseRowKernels(context.compute)),
      inputs_(inputs.begin(), inputs.end()),
      scratch_(scratch),
      times_(times),
      dropped_(inputs.size()),
      features_(inputs.size()),
      maps_(inputs.size()) {}

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

// Images dropped before the first block never enter; later ones stay, as their rows lie between
// those of others.
void VilBatch::Start() {
  std::vector<ImageSize> sizes;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (dropped_[i]) continue;
    members_.push_back(static_cast<int>(i));
    sizes.push_back(inputs_[i].pixels->size);
  }
  if (members_.empty()) return;
  plans_ = MakePlans(context_, sizes, false);
  Carver measure(nullptr);
  CarveVilBuffers(context_, plans_, measure);
  loan_ = std::make_unique<ScratchLoan>(scratch_, measure.used());
  Carver carver(loan_->data());
  buffers_ = CarveVilBuffers(context_, plans_, carver);
}

// The patch of a token, in the order of the weight's columns.
void VilBatch::GatherPatch(Place place, std::byte* to) const {
  const auto [image, position] = place;
  const VilStage& stage = context_.config->stages[stage_];
  const ImageSize map = plans_[stage_].images[image].map;
  const int p = stage.patch;
  const int y0 = position / map.width * p, x0 = position % map.width * p;
  const auto write = [&](const float* from, int64_t count) {
    kernels_.narrow(from, count, to);
    to += count * ElementBytes(context_.compute);
  };
  if (stage_ == 0) {
    const PixelValues& pixels = *inputs_[members_[image]].pixels;
    for (int c = 0; c < context_.config->channels; ++c) {
      for (int y = 0; y < p; ++y) {
        const int64_t row = int64_t{c} * pixels.size.height + y0 + y;
        write(pixels.values.data() + row * pixels.size.width + x0, p);
      }
    }
    return;
  }
  const VilTokens& before = plans_[stage_ - 1].images[image];
  const int64_t width = context_.config->stages[stage_ - 1].width;
  const float* x = buffers_.x[(stage_ - 1) % 2];
  for (int y = 0; y < p; ++y) {
    for (int k = 0; k < p; ++k) {
      const int64_t place = before.place[(y0 + y) * before.map.width + x0 + k];
      write(x + (before.row0 + place) * width, width);
    }
  }
}

void VilBatch::EmbedGlobals(const VilTokens& image) {
  const VilStage& stage = context_.config->stages[stage_];
  const VilStageWeights& weights = context_.weights->stages[stage_];
  float* x = buffers_.x[stage_ % 2] + int64_t{image.row0} * stage.width;
  for (size_t i = 0; i < weights.class_tokens.size(); ++i) {
    x[i] = weights.class_tokens[i] + (stage.absolute ? weights.class_positions[i] : 0);
  }
}

void VilBatch::PlaceRow(Place place, const void* y) const {
  const VilStage& stage = context_.config->stages[stage_];
  const VilStageWeights& weights = context_.weights->stages[stage_];
  const VilTokens& image = plans_[stage_].images[place.image];
  const int64_t d = stage.width;
  float* x = buffers_.x[stage_ % 2] + (image.row0 + image.place[place.position]) * d;
  if (context_.config->norm_embed) {
    std::fill_n(x, d, 0.0f);
    kernels_.residual_norm(x, y, weights.patch->bias.data(), weights.patch_norm.view(), d, nullptr);
  } else {
    kernels_.bias_widen(y, weights.patch->bias.data(), d, x);
  }
  if (!stage.absolute) return;
  const int64_t half = d / 2;
  const VilMapWeights& map = *plans_[stage_].maps[image.size];
  const float* row = map.row_positions.data() + place.position / image.map.width * half;
  const float* column = map.column_positions.data() + place.position % image.map.width * half;
  for (int64_t i = 0; i < half; ++i) {
    x[i] += row[i];
    x[half + i] += column[i];
  }
}

void VilBatch::Embed() {
  const VilStagePlan& plan = plans_[stage_];
  const VilStage& stage = context_.config->stages[stage_];
  const DenseLayer& patch = *context_.weights->stages[stage_].patch;
  std::vector<int64_t> first = {0};  // Local token of an image, counted over the batch.
  for (const VilTokens& image : plan.images) {
    EmbedGlobals(image);
    first.push_back(first.back() + static_cast<int64_t>(image.place.size()));
  }
  const auto place = [&](int64_t token) {
    const auto next = std::upper_bound(first.begin(), first.end(), token);
    const auto image = static_cast<int>(next - first.begin()) - 1;
    return Place{image, static_cast<int>(token - first[image])};
  };
  const int64_t out_bytes = patch.out() * ElementBytes(context_.compute);
  const PanelContext panels{context_.pool, buffers_.panel, times_};
  ForEachGatheredPanel(
      patch, patch.linear.sizes(), plan.local_rows(stage), panels,
      [&](int64_t token, std::byte* to) { GatherPatch(place(token), to); },
      [&](int64_t token, int64_t count, int, const std::byte* y) {
        panels.Each(count, [&](long i) { PlaceRow(place(token + i), y + i * out_bytes); });
      });
  // Last panels read past the rows: what stands there must not slow arithmetic down.
  const int64_t row_bytes = stage.width * ElementBytes(context_.compute);
  std::memset(buffers_.rows + plan.rows * row_bytes, 0,
              static_cast<size_t>(kPanelRows * row_bytes));
}

// The wanted stage's local tokens as [channels, rows, columns].
void VilBatch::KeepMaps() {
  const int64_t d = context_.config->stages[stage_].width;
  for (size_t m = 0; m < members_.size(); ++m) {
    const std::vector<int>& wanted = inputs_[members_[m]].stages;
    if (std::find(wanted.begin(), wanted.end(), static_cast<int>(stage_)) == wanted.end()) continue;
    const VilTokens& image = plans_[stage_].images[m];
    const float* x = buffers_.x[stage_ % 2] + image.row0 * d;
    const auto positions = static_cast<int64_t>(image.place.size());
    FeatureMap map{static_cast<int>(d), image.map, std::vector<float>(d * positions)};
    for (int64_t i = 0; i < positions; ++i) {
      for (int64_t c = 0; c < d; ++c) map.values[c * positions + i] = x[image.place[i] * d + c];
    }
    maps_[members_[m]].push_back(std::move(map));
  }
}

// After the last norm: the first global token, or the mean over all tokens in row order.
void VilBatch::ReadFeatures() {
  const VilConfig& config = *context_.config;
  const VilStage& stage = config.stages.back();
  const int64_t d = stage.width;
  const RowKernels& floats = ChooseRowKernels(Compute::kFp32);
  std::vector<float> row(d);
  for (size_t m = 0; m < members_.size(); ++m) {
    const VilTokens& image = plans_.back().images[m];
    const float* x = buffers_.x[(config.stages.size() - 1) % 2] + image.row0 * d;
    std::vector<float>& feature = features_[members_[m]];
    feature.assign(d, 0.0f);
    if (config.reads_class_token()) {
      floats.norm(x, context_.weights->norm.view(), d, feature.data());
      continue;
    }
    // Row-major over the map whatever order the tokens lie in.
    std::vector<double> sum(d);
    const auto add = [&](int64_t place) {
      floats.norm(x + place * d, context_.weights->norm.view(), d, row.data());
      for (int64_t c = 0; c < d; ++c) sum[c] += row[c];
    };
    for (int g = 0; g < stage.globals; ++g) add(g);
    for (const int32_t place : image.place) add(place);
    const auto count = static_cast<double>(stage.globals + image.place.size());
    for (int64_t c = 0; c < d; ++c) feature[c] = static_cast<float>(sum[c] / count);
  }
}

bool VilBatch::Advance() {
  const VilConfig& config = *context_.config;
  if (stage_ == 0 && block_ == 0) Start();
  if (members_.empty() || stage_ == config.stages.size()) return false;
  if (block_ == 0) Embed();
  RunVilBlock(context_, stage_, block_, plans_[stage_], buffers_, times_);
  if (++block_ < config.stages[stage_].blocks) return true;
  KeepMaps();
  block_ = 0;
  if (++stage_ < config.stages.size()) return true;
  if (!config.backbone) ReadFeatures();
  return false;
}

std::vector<float> VilBatch::Logits(int i) const {
  const DenseLayer& head = *context_.weights->head;
  std::vector<float> logits(head.out());
  const float* const rows[] = {features_[i].data()};
  ApplyToRows(head, rows, Activation::kNone, *context_.pool, logits.data());
  return logits;
}

}  // namespace longview::models
