#include "models/vil/pass.h"

#include "models/ops/attend.h"
#include "models/ops/feed_forward.h"
#include "models/ops/move_rows.h"
#include "models/ops/project.h"
#include "models/ops/residual.h"
#include "models/vil/attend_by_features.h"
#include "models/vil/sum_positions.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace longview::models {
namespace {

kernels::Table Added(const Table& values) {
  kernels::Table table;
  table.data = values.device() != nullptr ? values.device() : values.values();
  table.entries = static_cast<int32_t>(values.width());
  table.head_stride = table.entries;
  return table;
}

}  // namespace

VilPass::VilPass(const VilContext& context, std::span<const VisionPicture> pictures, bool measure)
    : StagedPass(pictures), context_(context) {
  const VilConfig& config = *context.config;
  std::vector<std::vector<ImageSize>> sizes(config.stages.size());
  for (const VisionPicture& picture : pictures) {
    const std::vector<ImageSize> of_picture = *VilMaps(config, picture.size);
    for (size_t s = 0; s < sizes.size(); ++s) sizes[s].push_back(of_picture[s]);
  }
  stages_.resize(config.stages.size());
  std::vector<StageMaps> maps(config.stages.size());
  for (size_t s = 0; s < stages_.size(); ++s) {
    PlannedStage& stage = stages_[s];
    stage.config = &config.stages[s];
    stage.pattern = LongShortOf(*stage.config);
    stage.plan = PlanVilStage(context, s, sizes[s], measure);
    ListBiases(s);
    const VilStagePlan& plan = stage.plan;
    const int globals = stage.config->globals;
    StageMaps& here = maps[s];
    here.images = plan.images;
    here.rows = plan.rows;
    here.width = stage.config->width;
    here.channels = s == 0 ? config.channels : config.stages[s - 1].width;
    here.side = here.stride = stage.config->patch;
    here.blocks = stage.config->blocks;
    here.globals = globals;
    if (stage.config->absolute) {
      here.positions = [this, s](size_t image) {
        const VilStagePlan& made = stages_[s].plan;
        const VilMapEntry entry =
            made.positions.empty() ? PlacesOf(s, made.images[image].map) : made.positions[image];
        return MapPositions{entry->row_positions, entry->column_positions};
      };
    }
    if (stage.config->attention == VilAttention::kReduction) {
      stage.reduction = {plan.images, stage.config->features, globals,
                         plan.keys - static_cast<int64_t>(plan.images.size()) * globals};
    }
  }
  const Feature feature = config.backbone              ? Feature::kNone
                          : config.reads_class_token() ? Feature::kClassRow
                                                       : Feature::kNormedMean;
  Begin(std::move(maps), feature, &context.weights->norm);
}

const VilBlock& VilPass::BlockOf(size_t stage, int block) const {
  return context_.weights->stages[stage].blocks[static_cast<size_t>(block)];
}

bool VilPass::alone(const PlannedStage& stage) const {
  const VilStagePlan& plan = stage.plan;
  if (!plan.long_short.empty()) {
    return plan.long_short.size() == 1 && !plan.long_short[0].is_large();
  }
  return plan.bands.size() == 1 && !plan.bands[0].is_slice();
}

StagedPass::EmbedWeights VilPass::EmbedOf(size_t stage) const {
  const VilStageWeights& weights = context_.weights->stages[stage];
  return {&weights.patch, context_.config->norm_embed ? &weights.patch_norm : nullptr,
          &weights.class_rows};
}

// Weights of one map size for a device's lists; its biases are a whole learned table.
VilMapEntry VilPass::PlacesOf(size_t stage, ImageSize map) {
  kept_.push_back(VilPlacesOf(context_, stage, map));
  return kept_.back();
}

void VilPass::ListBiases(size_t index) {
  PlannedStage& stage = stages_[index];
  const VilStagePlan& plan = stage.plan;
  const bool device = context_.on_device();
  const auto add = [&](Band& band, const std::vector<int32_t>& rows, ImageSize size,
                       const VilMapEntry* made) {
    MapBias& bias = band.maps.emplace_back();
    bias.rows = rows;
    bias.learned = LearnedEntries(*stage.config, size);
    bias.resized = ResizesTable(*stage.config, size);
    if (made != nullptr) {
      bias.of_block = [entry = *made](int block) {
        return std::span<const float>(entry->tables[static_cast<size_t>(block)]);
      };
    } else if (device) {
      bias.of_block = [this, index, size](int block) {
        return std::span<const float>(PlacesOf(index, size)->tables[static_cast<size_t>(block)]);
      };
    }
  };
  const bool biased = stage.config->relative_bias();
  for (const VilBand& from : plan.bands) {
    Band& band = stage.bands.emplace_back();
    if (from.attention.made == nullptr) continue;
    const std::vector<std::vector<int32_t>>& rows = from.attention.made->bias_rows;
    for (size_t i = 0; biased && i < rows.size(); ++i) {
      add(band, rows[i], from.attention.sizes[i],
          from.attention.maps.empty() ? nullptr : &from.attention.maps[i]);
    }
  }
  for (size_t b = 0; b < plan.long_short.size(); ++b) {
    const LongShortBand& from = plan.long_short[b];
    Band& band = stage.bands.emplace_back();
    // A device reads the tables of all maps as one, so its plan has entries of the joined table.
    if (device) band.joined = JoinedTokens(context_, index, plan.images, *from.whole);
    for (size_t i = 0; biased && i < from.maps.size(); ++i) {
      const std::vector<int32_t>& rows =
          from.is_large() ? from.shapes[i]->bias_rows[0] : from.whole->bias_rows[i];
      add(band, rows, from.maps[i], plan.biases[b].empty() ? nullptr : &plan.biases[b][i]);
    }
  }
}

void VilPass::StageLists(Backend& backend, size_t index) {
  PlannedStage& stage = stages_[index];
  const VilStagePlan& plan = stage.plan;
  const VilStage& config = *stage.config;
  stage.offsets = backend.Stage(plan.offsets);
  if (config.attention == VilAttention::kReduction) {
    stage.reduction_ref = StageReduction(backend, stage.reduction);
  }
  for (size_t b = 0; b < stage.bands.size(); ++b) {
    Band& band = stage.bands[b];
    band.biases = StageBiases(backend, band.maps, config.heads, config.blocks);
    if (plan.long_short.empty()) {
      const VilAttentionPlan& attention = plan.bands[b].attention;
      if (!attention.empty()) band.attention = backend.Stage(attention.made->plan);
      continue;
    }
    const LongShortBand& from = plan.long_short[b];
    if (from.is_large()) continue;
    const kernels::Plan& tokens = band.joined ? band.joined->plan : from.whole->tokens;
    band.long_short = StageLongShort(backend, *from.whole, tokens);
  }
  if (separates_globals(stage)) stage.globals = backend.Stage(plan.globals.made->plan);
}

void VilPass::CarveStage(Backend& backend, size_t index, Carver& carver) {
  PlannedStage& stage = stages_[index];
  const VilStagePlan& plan = stage.plan;
  const VilStage& config = *stage.config;
  Buffers& b = stage.b;
  b = {};
  const int64_t d = config.width;
  using Tail = Backend::Tail;
  const auto take = [&](int64_t count, int64_t columns, Tail tail) {
    return backend.CarveRows(count, columns, RowType::kCompute, tail, carver);
  };
  if (config.attention == VilAttention::kLongShort) {
    b.long_short = CarveLongShort(backend, context_,
                                  {.pattern = stage.pattern, .bands = plan.long_short}, carver);
  } else {
    const int64_t band = plan.band_rows();
    const int64_t columns = config.attention == VilAttention::kReduction ? d : 3 * d;
    b.normed = take(band, d, Tail::kPanel);
    b.qkv = take(band, columns, Tail::kWritten);
    // Only a reduction's keys come from a linear, which writes past the last row.
    const Tail sums = config.attention == VilAttention::kReduction ? Tail::kWritten : Tail::kNone;
    b.keys = backend.CarveRows(plan.keys, 2 * d, SumType(backend), sums, carver);
    if (separates_globals(stage)) {
      const auto globals = static_cast<int64_t>(plan.images.size()) * config.globals;
      b.global_inputs = take(globals, d, Tail::kPanel);
      b.global_outs = take(globals, d, Tail::kWritten);
      b.global_q = take(plan.rows, d, Tail::kNone);
      b.global_kv = take(plan.rows, 2 * d, Tail::kWritten);
    }
    if (plan.has_slices()) b.open = CarveOpenRows(OpenGlobals(config), context_, band, carver);
  }
  int64_t bias = 0;
  for (const Band& band : stage.bands) {
    bias = std::max(bias, BiasFloats(backend, band.maps, config.heads));
  }
  b.bias = carver.Take<float>(bias);
}

void VilPass::RunBlock(Backend& backend, size_t index, int block) {
  const PlannedStage& stage = stages_[index];
  const At at = {backend, index, block};
  if (block == 0) backend.ClearTail(NormedRows(stage));
  for (size_t band = 0; band < stage.bands.size(); ++band) {
    if (!stage.plan.long_short.empty()) {
      RunLongShort(at, band);
    } else if (stage.plan.bands[band].is_slice()) {
      RunSlice(at, band);
    } else {
      RunWhole(at, band);
    }
  }
}

void VilPass::Norm(const At& at, int64_t first, int64_t count) const {
  at.backend.Run(ops::Residual{x(at.stage).From(first).First(count),
                               {},
                               &BlockOf(at.stage, at.block).attention_norm,
                               NormPlace::kPre,
                               NormedRows(stages_[at.stage]).First(count)});
}

void VilPass::RunWhole(const At& at, size_t index) {
  const PlannedStage& stage = stages_[at.stage];
  const VilBand& band = stage.plan.bands[index];
  if (at.block == 0 || !alone(stage)) Norm(at, band.row0, band.rows);
  at.backend.Run(ops::Project{BlockOf(at.stage, at.block).qkv, stage.b.normed.First(band.rows),
                              stage.b.qkv.First(band.rows)});
  if (separates_globals(stage)) ProjectGlobals(at);
  Attend(at, index);
  Finish(at, index);
}

// The global rows' own keys and values are of every token.
void VilPass::ProjectGlobals(const At& at) const {
  const Buffers& b = stages_[at.stage].b;
  const VilBlock& block = BlockOf(at.stage, at.block);
  at.backend.Run(ops::Project{block.global_key_value, b.normed, b.global_kv});
  at.backend.Run(ops::Gather{b.normed, global_rows(at.stage), b.global_inputs});
  at.backend.Run(ops::Project{block.global_query, b.global_inputs, b.global_outs});
  at.backend.Run(ops::Scatter{b.global_outs, global_rows(at.stage), b.global_q});
}

void VilPass::Attend(const At& at, size_t index) {
  const PlannedStage& stage = stages_[at.stage];
  const VilStage& config = *stage.config;
  const VilBlock& block = BlockOf(at.stage, at.block);
  const Buffers& b = stage.b;
  const int64_t d = config.width;
  if (config.attention == VilAttention::kPerformer) {
    int64_t longest = 0;
    for (const MapTokens& image : stage.plan.images) {
      longest = std::max<int64_t>(longest, image.rows);
    }
    return at.backend.Run(ops::AttendByFeatures{b.qkv, b.normed, config.heads, config.features,
                                                block.features, stage.offsets, longest});
  }
  if (config.attention == VilAttention::kLinformer) {
    const bool shared = context_.config->share_kv;
    at.backend.Run(ops::SumPositions{
        block.project_keys, shared ? block.project_keys : block.project_values, stage.offsets,
        stage.plan.images, b.qkv.Columns(d, d), b.qkv.Columns(2 * d, d), b.keys});
  }
  if (config.attention == VilAttention::kReduction) {
    at.backend.Run(
        ops::ReduceMaps{stage.reduction_ref, block.reduce, block.key_value, b.normed, b.keys});
  }
  const Band& band = stage.bands[index];
  AttendSpans(at, band.attention, band.biases, false);
  if (separates_globals(stage)) AttendSpans(at, stage.globals, band.biases, true);
}

void VilPass::AttendSpans(const At& at, PlanRef plan, const BiasRef& biases,
                          bool separate_globals) const {
  if (plan.plan == nullptr) return;
  const PlannedStage& stage = stages_[at.stage];
  const VilStage& config = *stage.config;
  const VilBlock& block = BlockOf(at.stage, at.block);
  const Buffers& b = stage.b;
  const int64_t d = config.width;
  const Compute compute = at.backend.compute();
  kernels::Call call = HeadsCall(compute, separate_globals ? b.global_q : b.qkv.Columns(0, d),
                                 b.normed, config.heads);
  kernels::Source tokens;
  if (b.keys.count > 0) {
    tokens = HeadsSource(compute, b.keys.Columns(0, d), b.keys.Columns(d, d), config.heads);
    // Projected keys are fp32 sums on the host (SumType), whatever the compute type.
    if (b.keys.element == sizeof(float)) tokens.dtype = kernels::DType::kFloat32;
  } else if (separate_globals) {
    tokens =
        HeadsSource(compute, b.global_kv.Columns(0, d), b.global_kv.Columns(d, d), config.heads);
  } else {
    tokens = HeadsSource(compute, b.qkv.Columns(d, d), b.qkv.Columns(2 * d, d), config.heads);
  }
  std::vector<kernels::Source> sources(plan.plan->sources.size(), tokens);
  // The cyclic rule's third source: padding, whose keys and values are zero.
  if (sources.size() > 2) {
    kernels::Source& padding = sources[2];
    padding.k = padding.v = context_.weights->zeros.data();
    padding.dtype = context_.weights->zeros.dtype();
    padding.k_row_stride = padding.v_row_stride = 0;
  }
  call.sources = sources;
  std::vector<kernels::Table> tables;
  if (config.relative_bias()) {
    tables = {Added(block.bias.mixed), Added(block.bias.global)};
    at.backend.Run(ops::AddBiases{biases, block.bias.local, at.block, b.bias, tables});
  }
  call.tables = tables;
  at.backend.Run(ops::Attend{plan, call});
}

void VilPass::Finish(const At& at, size_t index) const {
  const PlannedStage& stage = stages_[at.stage];
  const VilBlock& block = BlockOf(at.stage, at.block);
  const Rows& normed = stage.b.normed;
  if (!separates_globals(stage)) {
    const VilBand& band = stage.plan.bands[index];
    return FeedForward(at, block.out, band.row0, band.rows, normed);
  }
  const int64_t globals = stage.config->globals;
  for (const MapTokens& image : stage.plan.images) {
    const int64_t local0 = image.row0 + globals;
    FeedForward(at, block.global_out, image.row0, globals, normed.From(image.row0));
    FeedForward(at, block.out, local0, image.count(), normed.From(local0));
  }
}

void VilPass::FeedForward(const At& at, const Weight& out, int64_t first, int64_t count,
                          const Rows& z) const {
  const PlannedStage& stage = stages_[at.stage];
  const VilBlock& block = BlockOf(at.stage, at.block);
  BlockWeights weights;
  weights.out = &out;
  weights.after_attention = &block.mlp_norm;
  weights.expand = &block.expand;
  weights.contract = &block.contract;
  weights.norms = NormPlace::kPre;
  if (alone(stage) && at.block + 1 < stage.config->blocks) {
    weights.after_layer = &BlockOf(at.stage, at.block + 1).attention_norm;
  }
  FeedForwardInParts(at.backend, weights, x(at.stage).From(first).First(count), z);
}

}  // namespace longview::models
