#include "models/cvt_ls/pass.h"

#include "models/cvt_ls/norm_rows.h"
#include "models/ops/feed_forward.h"
#include "models/ops/long_short.h"
#include "models/ops/residual.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace longview::models {
namespace {

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

// See MapNeighbours.
std::vector<int32_t> PositionsOf(const MapTokens& image) {
  std::vector<int32_t> positions(static_cast<size_t>(image.rows), -1);
  const auto count = static_cast<int32_t>(image.count());
  for (int32_t i = 0; i < count; ++i) positions[static_cast<size_t>((*image.places)[i])] = i;
  return positions;
}

}  // namespace

CvtPass::CvtPass(const CvtContext& context, std::span<const VisionPicture> pictures)
    : StagedPass(pictures), context_(context) {
  const CvtConfig& config = *context.config;
  std::vector<std::vector<ImageSize>> sizes(kCvtStages);
  for (const VisionPicture& picture : pictures) {
    const std::array<ImageSize, kCvtStages> of_picture = *CvtMaps(picture.size);
    for (size_t s = 0; s < kCvtStages; ++s) sizes[s].push_back(of_picture[s]);
  }
  std::vector<StageMaps> maps(kCvtStages);
  for (size_t s = 0; s < kCvtStages; ++s) stages_.push_back(PlanStage(s, sizes[s]));
  for (size_t s = 0; s < kCvtStages; ++s) {
    PlannedStage& stage = stages_[s];
    stage.neighbours.images = stage.images;
    maps[s].images = stage.images;
    maps[s].rows = stage.rows;
    maps[s].width = config.stages[s].width;
    if (s > 0) maps[s].channels = config.stages[s - 1].width;
    maps[s].side = kCvtEmbeddings[s].kernel;
    maps[s].stride = kCvtEmbeddings[s].stride;
    maps[s].padding = kCvtEmbeddings[s].padding();
    maps[s].blocks = config.stages[s].blocks;
    maps[s].globals = stage.pattern.class_tokens;
  }
  const Feature feature = config.backbone    ? Feature::kNone
                          : config.mean_pool ? Feature::kMean
                                             : Feature::kClassRow;
  Begin(std::move(maps), feature, &context.weights->norm);
}

CvtPass::PlannedStage CvtPass::PlanStage(size_t index, std::span<const ImageSize> maps) const {
  const CvtConfig& config = *context_.config;
  ShapeCache& shapes = *context_.shapes;
  PlannedStage stage;
  stage.pattern = LongShortOf(config, config.stages[index]);
  stage.images = PlaceImages(shapes, index, maps, stage.pattern.class_tokens,
                             std::max(stage.pattern.window, 1));
  for (const MapTokens& image : stage.images) {
    stage.rows += image.rows;
    stage.neighbours.positions.push_back(shapes.Of<std::vector<int32_t>>(
        ShapeKey(ShapeKind::kTokenPositions, index, {&image.map, 1}),
        [&] { return PositionsOf(image); }));
  }
  LongShortCuts cuts = context_.cuts;
  // Landmarks made from keys would need two rounds of neighbours.
  cuts.never = cuts.never || config.landmarks_from_keys;
  stage.bands =
      PlanLongShortBands(stage.pattern, cuts, index, config.stride(index) / config.stride(0),
                         context_.tile_rows(), stage.images, shapes);
  return stage;
}

StagedPass::EmbedWeights CvtPass::EmbedOf(size_t stage) const {
  const CvtStageWeights& weights = context_.weights->stages[stage];
  return {&weights.embed, context_.config->embed_norm ? &weights.embed_norm : nullptr,
          &context_.weights->class_row};
}

void CvtPass::StageLists(Backend& backend, size_t index) {
  PlannedStage& stage = stages_[index];
  stage.neighbours_ref = StageNeighbours(backend, stage.neighbours);
  stage.lists.clear();
  for (const LongShortBand& band : stage.bands) {
    LongShortLists& lists = stage.lists.emplace_back();
    if (!band.is_large()) lists = StageLongShort(backend, *band.whole, band.whole->tokens);
  }
}

// Convolutions read a map row above and below what a slice loads.
void CvtPass::CarveStage(Backend& backend, size_t index, Carver& carver) {
  PlannedStage& stage = stages_[index];
  stage.memory = CarveLongShort(backend, context_,
                                {.pattern = stage.pattern,
                                 .bands = stage.bands,
                                 .one_product = false,
                                 .value_scores = !context_.config->shared_landmarks,
                                 .beside = std::max(stage.pattern.window, 1)},
                                carver);
}

void CvtPass::RunBlock(Backend& backend, size_t index, int block) {
  const PlannedStage& stage = stages_[index];
  const At at = {backend, index, block};
  if (block == 0) backend.ClearTail(stage.memory.normed);
  for (size_t band = 0; band < stage.bands.size(); ++band) {
    if (stage.bands[band].is_large()) {
      RunLarge(at, stage.bands[band]);
    } else {
      RunWhole(at, band);
    }
  }
}

void CvtPass::Norm(const At& at, int64_t first, int64_t count) const {
  at.backend.Run(ops::Residual{x(at.stage).From(first).First(count),
                               {},
                               &BlockOf(at).attention_norm,
                               NormPlace::kPre,
                               stages_[at.stage].memory.normed.First(count)});
}

ops::Convolve CvtPass::Convolution(const At& at, const Separable& layer, const Rows& from,
                                   int64_t from0, int64_t first, const Rows& out) const {
  return {stages_[at.stage].neighbours_ref, layer, from, from0, first, out};
}

void CvtPass::Project(const At& at, int64_t normed0, int64_t first,
                      const LongShortRows& out) const {
  const PlannedStage& stage = stages_[at.stage];
  const CvtBlock& block = BlockOf(at);
  const auto project = [&](const Separable& layer, const Rows& to) {
    ops::Convolve convolve = Convolution(at, layer, stage.memory.normed, normed0, first, to);
    convolve.copies_globals = stage.pattern.class_tokens > 0 && !context_.config->class_pointwise;
    at.backend.Run(convolve);
  };
  if (out.q) project(block.query, out.q);
  project(block.key, out.keys);
  project(block.value, out.values);
}

// After the scores may have been read off the keys as they were.
void CvtPass::NormTokens(const At& at, const LongShortRows& rows) const {
  if (!context_.config->dual_norm) return;
  at.backend.Run(ops::NormRows{rows.keys, BlockOf(at).token_norm});
  at.backend.Run(ops::NormRows{rows.values, BlockOf(at).token_norm});
}

// Runs a block on one band. If that is all images, its tail leaves LN(x) for the next block.
void CvtPass::RunWhole(const At& at, size_t index) const {
  const PlannedStage& stage = stages_[at.stage];
  const LongShortBand& band = stage.bands[index];
  const LongShortMemory& memory = stage.memory;
  const CvtConfig& config = *context_.config;
  const CvtBlock& block = BlockOf(at);
  if (at.block == 0 || stage.bands.size() > 1) Norm(at, band.row0, band.rows);
  LongShortRows rows = memory.rows;
  for (Rows* part : {&rows.q, &rows.keys, &rows.values, &rows.scores}) {
    *part = part->First(band.rows);
  }
  Project(at, band.row0, band.row0, rows);
  if (stage.pattern.ranks > 0) {
    const Rows& from = config.landmarks_from_keys ? rows.keys : memory.normed;
    const auto score = [&](const Separable& layer, const Rows& scores) {
      at.backend.Run(Convolution(at, layer, from, band.row0, band.row0, scores));
    };
    score(block.landmarks, rows.scores);
    if (!config.shared_landmarks) {
      score(block.value_landmarks, memory.value_scores.First(band.rows));
    }
  }
  NormTokens(at, rows);
  AttendLongShort(at.backend, stage.pattern, stage.lists[index], band.rows, memory,
                  LandmarkNorm(at), {});
  FeedForward(at, band, memory.normed);
}

struct CvtPass::LargeRows final : LargeMapRows {
  LargeRows(const CvtPass& pass, const At& at, const LongShortBand& band)
      : pass(pass),
        at(at),
        band(band),
        stage(pass.stages_[at.stage]),
        local0(band.row0 + stage.pattern.class_tokens) {}

  void Score(int64_t begin, int64_t end) const override {
    const LongShortMemory& memory = stage.memory;
    const CvtBlock& block = pass.BlockOf(at);
    const int64_t normed0 = NormAround(begin, end);
    const auto score = [&](const Separable& layer, const Rows& scores) {
      at.backend.Run(pass.Convolution(at, layer, memory.normed, normed0, local0 + begin,
                                      scores.From(begin).First(end - begin)));
    };
    score(block.landmarks, memory.scores);
    if (memory.sliced_values.count > 0) score(block.value_landmarks, memory.sliced_values);
  }
  void Project(int64_t begin, int64_t end, bool queries, std::byte* to) const override {
    ProjectRows(NormAround(begin, end), local0 + begin, end - begin, queries, to);
  }
  void ProjectClass(std::byte* to) const override {
    pass.Norm(at, band.row0, stage.pattern.class_tokens);
    ProjectRows(band.row0, band.row0, stage.pattern.class_tokens, true, to);
  }
  std::vector<kernels::Table> Tables(size_t) const override { return {}; }

  void ProjectRows(int64_t normed0, int64_t first, int64_t count, bool queries,
                   std::byte* to) const {
    LongShortRows rows = SideBySide(stage.memory.normed, count, to);
    if (!queries) rows.q = {};
    pass.Project(at, normed0, first, rows);
    pass.NormTokens(at, rows);
  }
  // LN(x) of tokens [begin, end) and of their neighbours; returns the batch's row of the first.
  int64_t NormAround(int64_t begin, int64_t end) const {
    const int64_t beside = int64_t{std::max(stage.pattern.window, 1)} * band.map.shapes[0].width;
    const int64_t first = std::max<int64_t>(begin - beside, 0);
    pass.Norm(at, local0 + first, std::min(end + beside, band.map.tokens) - first);
    return local0 + first;
  }

  const CvtPass& pass;
  const At& at;
  const LongShortBand& band;
  const PlannedStage& stage;
  const int64_t local0;
};

// x changes once all outputs are there.
void CvtPass::RunLarge(const At& at, const LongShortBand& band) const {
  const PlannedStage& stage = stages_[at.stage];
  const LargeRows rows(*this, at, band);
  at.backend.Run(LargeMapOf(stage.pattern, band, stage.memory, LandmarkNorm(at), rows));
  FeedForward(at, band, stage.memory.outputs);
}

void CvtPass::FeedForward(const At& at, const LongShortBand& band, const Rows& z) const {
  const CvtBlock& block = BlockOf(at);
  const bool last = at.block + 1 == context_.config->stages[at.stage].blocks;
  BlockWeights weights;
  weights.out = block.out.out > 0 ? &block.out : nullptr;
  weights.after_attention = &block.mlp_norm;
  weights.expand = &block.expand;
  weights.contract = &block.contract;
  weights.activation = context_.config->activation;
  weights.norms = NormPlace::kPre;
  if (!last && stages_[at.stage].bands.size() == 1 && !band.is_large()) {
    weights.after_layer = &BlockOf({at.backend, at.stage, at.block + 1}).attention_norm;
  }
  FeedForwardInParts(at.backend, weights, x(at.stage).From(band.row0).First(band.rows), z);
}

}  // namespace longview::models
