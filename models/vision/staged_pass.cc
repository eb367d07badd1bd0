#include "models/vision/staged_pass.h"

#include "models/ops/feed_forward.h"
#include "models/ops/move_rows.h"
#include "models/ops/residual.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/base/workspace.h"

namespace longview::models {

VisionPicture WholePicture(ImageSize size, size_t stages) {
  VisionPicture picture{size, nullptr, std::vector<int>(stages)};
  std::iota(picture.stages.begin(), picture.stages.end(), 0);
  return picture;
}

void StagedPass::Begin(std::vector<StageMaps> stages, Feature feature, const NormWeight* norm) {
  stages_ = std::move(stages);
  feature_ = feature;
  features_ = feature != Feature::kNone;
  norm_ = norm;
  for (size_t s = 0; s < stages_.size(); ++s) {
    const StageMaps& stage = stages_[s];
    for (int b = 0; b < stage.blocks; ++b) layers_.push_back({s, b});
    TokenMaps& tokens = tokens_.emplace_back();
    tokens.images = stage.images;
    if (s > 0) tokens.before = stages_[s - 1].images;
    tokens.channels = stage.channels;
    tokens.width = static_cast<int>(stage.width);
    tokens.side = stage.side;
    tokens.stride = stage.stride;
    tokens.padding = stage.padding;
    tokens.positions = stage.positions;
    std::vector<int32_t>& rows = global_rows_.emplace_back();
    std::vector<int32_t>& entries = class_entries_.emplace_back();
    for (const MapTokens& image : stage.images) {
      for (int g = 0; g < stage.globals; ++g) {
        rows.push_back(image.row0 + g);
        entries.push_back(g);
      }
    }
  }
  for (const VisionPicture& picture : pictures_) {
    tokens_[0].sizes.push_back(picture.size);
    tokens_[0].pixels.push_back(picture.pixels);
  }
  for (const MapTokens& image : stages_.back().images) feature_rows_.push_back(image.row0);
  PlaceResults();
}

// Features of all pictures, then their maps, picture by picture.
void StagedPass::PlaceResults() {
  result_floats_ = features_ ? std::ssize(pictures_) * stages_.back().width : 0;
  wanted_.resize(stages_.size());
  std::vector<int64_t> token0(stages_.size());
  for (size_t i = 0; i < pictures_.size(); ++i) {
    const std::vector<int>& wanted = pictures_[i].stages;
    for (size_t s = 0; s < stages_.size(); ++s) {
      const int64_t tokens = stages_[s].images[i].count();
      if (std::ranges::find(wanted, static_cast<int>(s)) != wanted.end()) {
        wanted_[s].push_back({static_cast<int>(i), token0[s], tokens, result_floats_});
        result_floats_ += tokens * stages_[s].width;
      }
      token0[s] += tokens;
    }
  }
}

void StagedPass::Stage(Backend& backend) {
  tokens_ref_.clear();
  wanted_ref_.clear();
  global_rows_ref_.clear();
  class_entries_ref_.clear();
  for (size_t s = 0; s < stages_.size(); ++s) {
    tokens_ref_.push_back(StageTokens(backend, tokens_[s]));
    wanted_ref_.push_back(StagePlanes(backend, wanted_[s]));
    global_rows_ref_.push_back(backend.Stage(global_rows_[s]));
    class_entries_ref_.push_back(backend.Stage(class_entries_[s]));
    StageLists(backend, s);
  }
  if (feature_ == Feature::kClassRow) feature_rows_ref_ = backend.Stage(feature_rows_);
  if (feature_ == Feature::kNormedMean || feature_ == Feature::kMean) {
    means_ref_ = StageMeans(backend, stages_.back().images);
  }
}

// Class rows lie where the blocks work afterwards.
void StagedPass::CarveAll(Backend& backend, size_t stage, Carver& carver) {
  const StageMaps& here = stages_[stage];
  Carver tokens = carver;
  class_rows_[stage] = backend.CarveRows(static_cast<int64_t>(global_rows_[stage].size()),
                                         here.width, RowType::kFloat, Backend::Tail::kNone, tokens);
  CarveStage(backend, stage, carver);
  if (tokens.used() > carver.used()) carver = tokens;
}

// Residual streams of even stages lie at the front of one block, of odd ones at its end; what a
// stage works with lies between its stream and the other end.
void StagedPass::Take(Backend& backend) {
  results_ = backend.TakeResults(result_floats_);
  x_.assign(stages_.size(), {});
  class_rows_.assign(stages_.size(), {});
  size_t total = 0;
  std::vector<size_t> streams;
  for (size_t s = 0; s < stages_.size(); ++s) {
    const StageMaps& stage = stages_[s];
    streams.push_back(
        kernels::AlignUp(static_cast<size_t>(stage.rows * stage.width) * sizeof(float)));
    Carver measure(nullptr);
    CarveAll(backend, s, measure);
    total = std::max(total, streams[s] + measure.used());
    if (s > 0) total = std::max(total, streams[s - 1] + streams[s]);
  }
  std::byte* const base =
      backend.Take(static_cast<int64_t>(total / sizeof(float)), 1, RowType::kFloat).data;
  for (size_t s = 0; s < stages_.size(); ++s) {
    const bool even = s % 2 == 0;
    const size_t at = even ? 0 : total - streams[s];
    std::byte* const work = base == nullptr ? nullptr : base + (even ? streams[s] : 0);
    Carver rest(work);
    CarveAll(backend, s, rest);
    Carver stream(base == nullptr ? nullptr : base + at);
    x_[s] = backend.CarveRows(stages_[s].rows, stages_[s].width, RowType::kFloat,
                              Backend::Tail::kNone, stream);
  }
}

void StagedPass::MakeTokens(Backend& backend, size_t stage) {
  const EmbedWeights weights = EmbedOf(stage);
  backend.Run(ops::MakeTokens{tokens_ref_[stage], *weights.weight, weights.norm,
                              stage > 0 ? x_[stage - 1] : Rows(), x_[stage]});
  if (global_rows_[stage].empty()) return;
  backend.Run(ops::LookUp{*weights.class_rows, class_entries_ref_[stage], class_rows_[stage]});
  backend.Run(ops::Scatter{class_rows_[stage], global_rows_ref_[stage], x_[stage]});
}

void StagedPass::MakeFeatures(Backend& backend) {
  const Rows& x = x_.back();
  if (feature_ == Feature::kNormedMean) {
    return backend.Run(ops::MapMeans{means_ref_, x, norm_, results_.floats()});
  }
  Rows out = x.First(static_cast<int64_t>(pictures_.size()));
  out.data = results_.data;
  if (feature_ == Feature::kMean) {
    backend.Run(ops::MapMeans{means_ref_, x, nullptr, results_.floats()});
  } else {
    backend.Run(ops::Gather{x, feature_rows_ref_, out});
  }
  backend.Run(ops::Residual{out, {}, norm_, NormPlace::kPost, {}});
}

void StagedPass::FeedForwardInParts(Backend& backend, const BlockWeights& weights, const Rows& x,
                                    const Rows& z) {
  constexpr int64_t kPartRows = 32768;
  for (int64_t row = 0; row < x.count; row += kPartRows) {
    const int64_t rows = std::min(kPartRows, x.count - row);
    const Rows part = z.From(row).First(rows);
    backend.Run(ops::FeedForward{weights, {x.From(row).First(rows), part, part}});
  }
}

void StagedPass::Layer(Backend& backend, int layer) {
  const auto [stage, block] = layers_[static_cast<size_t>(layer)];
  if (block == 0) MakeTokens(backend, stage);
  RunBlock(backend, stage, block);
  if (block + 1 < stages_[stage].blocks) return;
  backend.Run(ops::MapPlanes{tokens_ref_[stage], wanted_ref_[stage], x_[stage], results_.floats()});
  if (stage + 1 == stages_.size() && features_) MakeFeatures(backend);
}

}  // namespace longview::models
