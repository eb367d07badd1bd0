#include "models/vision/staged_batch.h"

#include <algorithm>

#include "models/layers/map_rows.h"

namespace longview::models {

StagedBatch::StagedBatch(const ComputeContext& context, std::span<const VisionInput> inputs,
                         ScratchKeeper& scratch, EncoderTimes* times)
    : context_(context),
      inputs_(inputs.begin(), inputs.end()),
      scratch_(scratch),
      times_(times),
      dropped_(inputs.size()),
      features_(inputs.size()),
      maps_(inputs.size()) {}

// Returns whether an image takes part.
bool StagedBatch::Start() {
  started_ = true;
  std::vector<ImageSize> sizes;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (dropped_[i]) continue;
    members_.push_back(static_cast<int>(i));
    sizes.push_back(inputs_[i].pixels->size);
  }
  if (members_.empty()) return false;
  Plan(sizes);
  Carver measure(nullptr);
  Carve(measure);
  loan_ = std::make_unique<ScratchLoan>(scratch_, measure.used());
  Carver carver(loan_->data());
  Carve(carver);
  return true;
}

void StagedBatch::MakeTokens() {
  const TokenMaker make = Tokens();
  const DenseLayer& layer = *make.layer;
  const Stream to = StreamOf(stage_);
  const Stream from = stage_ == 0 ? Stream() : StreamOf(stage_ - 1);
  const RowKernels& kernels = ChooseRowKernels(context_.compute);
  const int64_t d = layer.out(), out_bytes = d * ElementBytes(context_.compute);
  const TokenFinder finder(to.images);
  const PanelContext panels{context_.pool, make.panel, times_};
  const auto gather = [&](int64_t token, std::byte* taps_of_token) {
    const TokenFinder::Place at = finder.Find(token);
    const Taps taps{at.y * make.stride - make.padding, at.x * make.stride - make.padding,
                    make.kernel};
    if (stage_ == 0) {
      GatherPixels(*inputs_[members_[at.image]].pixels, taps, context_.compute, taps_of_token);
    } else {
      GatherRows(from.x, from.width, from.images[at.image], taps, context_.compute, taps_of_token);
    }
  };
  const auto place = [&](int64_t token, const std::byte* y) {
    const TokenFinder::Place at = finder.Find(token);
    const MapTokens& image = to.images[at.image];
    float* x = to.x + image.row(int64_t{at.y} * image.map.width + at.x) * d;
    if (make.norm != nullptr) {
      std::fill_n(x, d, 0.0f);
      kernels.residual_norm(x, y, layer.bias.data(), make.norm->view(), d, nullptr);
    } else {
      kernels.bias_widen(y, layer.bias.data(), d, x);
    }
    AddPlace(at, x);
  };
  ForEachGatheredPanel(layer, layer.linear.sizes(), finder.tokens(), panels, gather,
                       [&](int64_t token, int64_t count, int, const std::byte* y) {
                         panels.Each(count, [&](long i) { place(token + i, y + i * out_bytes); });
                       });
}

// The wanted stage's local tokens as [channels, rows, columns].
void StagedBatch::KeepMaps() {
  const Stream stream = StreamOf(stage_);
  for (size_t m = 0; m < members_.size(); ++m) {
    const std::vector<int>& wanted = inputs_[members_[m]].stages;
    if (std::find(wanted.begin(), wanted.end(), static_cast<int>(stage_)) == wanted.end()) continue;
    const MapTokens& tokens = stream.images[m];
    const int64_t positions = tokens.count();
    FeatureMap map{static_cast<int>(stream.width), tokens.map,
                   std::vector<float>(stream.width * positions)};
    // A few rows at a time stay in cache while their columns become runs.
    constexpr int64_t kRows = 32;
    for (int64_t first = 0; first < positions; first += kRows) {
      const int64_t end = std::min(first + kRows, positions);
      for (int64_t c = 0; c < stream.width; ++c) {
        for (int64_t i = first; i < end; ++i) {
          map.values[c * positions + i] = stream.x[tokens.row(i) * stream.width + c];
        }
      }
    }
    maps_[members_[m]].push_back(std::move(map));
  }
}

bool StagedBatch::Advance() {
  if (!started_ && !Start()) return false;
  if (members_.empty() || stage_ == Stages()) return false;
  if (block_ == 0) {
    MakeTokens();
    EnterStage();
  }
  RunBlock();
  if (++block_ < Blocks(stage_)) return true;
  KeepMaps();
  block_ = 0;
  if (stage_ + 1 == Stages()) {
    for (size_t m = 0; m < members_.size(); ++m) {
      features_[members_[m]] = Feature(static_cast<int>(m));
    }
  }
  return ++stage_ < Stages();
}

std::vector<float> StagedBatch::Logits(int i) const {
  const DenseLayer& head = Head();
  std::vector<float> logits(head.out());
  const float* const rows[] = {features_[i].data()};
  ApplyToRows(head, rows, Activation::kNone, *context_.pool, logits.data());
  return logits;
}

}  // namespace longview::models
