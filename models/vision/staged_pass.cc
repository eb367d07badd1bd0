#include "models/vision/staged_pass.h"

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

void CountPass(VisionPass& pass, Ops& ops, MapOps& maps) {
  pass.Stage(ops, maps);
  pass.Take(ops, maps);
  pass.set_results(nullptr);
  for (int layer = 0; layer < pass.layers(); ++layer) pass.Layer(ops, maps, layer);
}

Rows CarveRows(int64_t count, int64_t width, int64_t element, int64_t tail, Carver& carver) {
  Rows rows;
  rows.count = count;
  rows.width = rows.stride = width;
  rows.element = element;
  const int64_t padded = count == 0 ? 0 : count + tail;
  rows.data = carver.TakeBytes(static_cast<size_t>(padded * rows.row_bytes()));
  return rows;
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
  result_floats_ = static_cast<int64_t>(pictures_.size()) * feature_floats();
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

void StagedPass::Stage(Ops& ops, MapOps& maps) {
  tokens_ref_.clear();
  wanted_ref_.clear();
  global_rows_ref_.clear();
  class_entries_ref_.clear();
  for (size_t s = 0; s < stages_.size(); ++s) {
    tokens_ref_.push_back(maps.Stage(tokens_[s]));
    wanted_ref_.push_back(maps.Stage(std::span<const WantedMap>(wanted_[s])));
    global_rows_ref_.push_back(ops.Stage(global_rows_[s]));
    class_entries_ref_.push_back(ops.Stage(class_entries_[s]));
    StageLists(ops, maps, s);
  }
  if (feature_ == Feature::kClassRow) feature_rows_ref_ = ops.Stage(feature_rows_);
  if (feature_ == Feature::kNormedMean || feature_ == Feature::kMean) {
    means_ref_ = maps.StageMeans(stages_.back().images);
  }
}

// Class rows lie where the blocks work afterwards.
void StagedPass::CarveAll(Ops& ops, MapOps& maps, size_t stage, Carver& carver) {
  const StageMaps& here = stages_[stage];
  Carver tokens = carver;
  class_rows_[stage] = CarveRows(static_cast<int64_t>(global_rows_[stage].size()), here.width,
                                 sizeof(float), 0, tokens);
  CarveStage(ops, maps, stage, carver);
  if (tokens.used() > carver.used()) carver = tokens;
}

// Residual streams of even stages lie at the front of one block, of odd ones at its end; what a
// stage works with lies between its stream and the other end.
void StagedPass::Take(Ops& ops, MapOps& maps) {
  x_.assign(stages_.size(), {});
  class_rows_.assign(stages_.size(), {});
  size_t total = 0;
  std::vector<size_t> streams;
  for (size_t s = 0; s < stages_.size(); ++s) {
    const StageMaps& stage = stages_[s];
    streams.push_back(
        kernels::AlignUp(static_cast<size_t>(stage.rows * stage.width) * sizeof(float)));
    Carver measure(nullptr);
    CarveAll(ops, maps, s, measure);
    total = std::max(total, streams[s] + measure.used());
    if (s > 0) total = std::max(total, streams[s - 1] + streams[s]);
  }
  std::byte* const base =
      ops.Take(static_cast<int64_t>(total / sizeof(float)), 1, RowType::kFloat).data;
  for (size_t s = 0; s < stages_.size(); ++s) {
    const bool even = s % 2 == 0;
    const size_t at = even ? 0 : total - streams[s];
    std::byte* const work = base == nullptr ? nullptr : base + (even ? streams[s] : 0);
    Carver rest(work);
    CarveAll(ops, maps, s, rest);
    Carver stream(base == nullptr ? nullptr : base + at);
    x_[s] = CarveRows(stages_[s].rows, stages_[s].width, sizeof(float), 0, stream);
  }
}

void StagedPass::MakeTokens(Ops& ops, MapOps& maps, size_t stage) {
  const EmbedWeights weights = EmbedOf(stage);
  TokenArgs args;
  args.tokens = tokens_ref_[stage];
  args.weight = weights.weight;
  args.norm = weights.norm;
  if (stage > 0) args.before = x_[stage - 1];
  args.x = x_[stage];
  maps.MakeTokens(args);
  if (global_rows_[stage].empty()) return;
  ops.Gather(*weights.class_rows, class_entries_ref_[stage], class_rows_[stage]);
  ops.Scatter(class_rows_[stage], global_rows_ref_[stage], x_[stage]);
}

void StagedPass::MakeFeatures(Ops& ops, MapOps& maps) {
  const Rows& x = x_.back();
  if (feature_ == Feature::kNormedMean) return maps.Means(means_ref_, x, norm_, results_);
  Rows out = x.First(static_cast<int64_t>(pictures_.size()));
  out.data = reinterpret_cast<std::byte*>(results_);
  if (feature_ == Feature::kMean) {
    maps.Means(means_ref_, x, nullptr, results_);
  } else {
    ops.Gather(x, feature_rows_ref_, out);
  }
  ops.Residual(out, {}, norm_, NormPlace::kPost, {});
}

void StagedPass::FeedForwardInParts(Ops& ops, const BlockWeights& weights, const Rows& x,
                                    const Rows& z) {
  constexpr int64_t kPartRows = 32768;
  for (int64_t row = 0; row < x.count; row += kPartRows) {
    const int64_t rows = std::min(kPartRows, x.count - row);
    const Rows part = z.From(row).First(rows);
    ops.FeedForward(weights, {x.From(row).First(rows), part, part});
  }
}

void StagedPass::Layer(Ops& ops, MapOps& maps, int layer) {
  const auto [stage, block] = layers_[static_cast<size_t>(layer)];
  if (block == 0) MakeTokens(ops, maps, stage);
  RunBlock(ops, maps, stage, block);
  if (block + 1 < stages_[stage].blocks) return;
  maps.Planes(tokens_ref_[stage], wanted_ref_[stage], x_[stage], results_);
  if (stage + 1 == stages_.size() && features_) MakeFeatures(ops, maps);
}

}  // namespace longview::models
