#include "models/vil/buffers.h"

#include <algorithm>
#include <cmath>

#include "models/layers/span_rows.h"
#include "models/long_short/slice_attention.h"

namespace longview::models {
namespace {

kernels::Table Added(const std::vector<float>& values, int heads) {
  kernels::Table table;
  table.data = values.data();
  table.entries = static_cast<int32_t>(values.size()) / heads;
  table.head_stride = table.entries;
  return table;
}

size_t LongShortWorkspaceOf(const VilContext& context, const VilStage& stage,
                            const VilStagePlan& plan) {
  const LongShortPattern pattern = LongShortOf(stage);
  size_t bytes = 0;
  for (const VilLongShort& band : plan.long_short) {
    if (band.map.slices.empty()) {
      bytes = std::max(bytes, LongShortWorkspace(pattern, band.whole, context));
    }
    for (const LongShortPlan& shape : band.shapes) {
      bytes = std::max(bytes, LongShortSliceWorkspace(pattern, shape, context));
    }
  }
  return bytes;
}

// What long-short attention has beside rows and projections. Outputs of a large map come when its
// scores are done with.
void CarveLongShort(const VilContext& context, const VilStage& stage, const VilStagePlan& plan,
                    Carver& carver, VilBuffers& b) {
  const LongShortPattern pattern = LongShortOf(stage);
  const size_t row = static_cast<size_t>(pattern.width * ElementBytes(context.compute));
  int64_t scores = 0;
  size_t outputs = 0, bytes = 0;
  for (const VilBand& band : plan.bands) {
    const VilLongShort& made = plan.long_short[band.attention];
    if (!band.is_slice()) {
      scores = std::max(scores, band.rows * pattern.columns());
      bytes = std::max(bytes, LongShortBytes(pattern, made.whole, context));
      continue;
    }
    const int64_t tokens = made.map.tokens;
    outputs = std::max({outputs, (pattern.class_tokens + tokens + kPanelRows) * row,
                        static_cast<size_t>(tokens * pattern.columns()) * sizeof(float)});
    bytes = std::max(bytes, LongShortSliceBytes(pattern, context, band.rows));
  }
  b.scores = carver.Take<float>(scores);
  b.outputs = carver.TakeBytes(outputs);
  b.long_short = carver.TakeBytes(bytes);
}

// Bytes of workspace that a stage's attention takes.
size_t WorkspaceOf(const VilContext& context, size_t index, const VilStagePlan& plan) {
  const VilStage& stage = context.config->stages[index];
  const int threads = context.pool->threads();
  const VilBuffers none;
  if (stage.attention == VilAttention::kPerformer) {
    return MeasurePerformer(MakePerformerCall(context, stage, plan, none)).total(threads);
  }
  if (stage.attention == VilAttention::kLongShort)
    return LongShortWorkspaceOf(context, stage, plan);
  size_t bytes = 0;
  const auto measure = [&](const VilAttentionPlan& attention, bool separate) {
    if (attention.plan.items.empty()) return;
    const VilCall call(context, index, attention, -1, none, separate);
    bytes = std::max(bytes, Measure(attention.plan, call.call(), context.isa).total(threads));
  };
  for (const VilAttentionPlan& attention : plan.attention) measure(attention, false);
  measure(plan.globals, true);
  return bytes;
}

// All but the residual stream.
VilBuffers CarveStage(const VilContext& context, size_t index, const VilStagePlan& plan,
                      Carver& carver) {
  const VilStage& stage = context.config->stages[index];
  const int64_t d = stage.width, band = plan.band_rows();
  const auto take = [&](int64_t count) {
    return carver.TakeBytes(static_cast<size_t>(count * ElementBytes(context.compute)));
  };
  VilBuffers b;
  b.rows = take((band + kPanelRows) * d);
  b.qkv = take(band * 3 * d);
  if (!plan.globals.plan.items.empty()) {
    b.global_q = take(plan.rows * d);
    b.global_kv = take(plan.rows * 2 * d);
  }
  b.keys = carver.Take<float>(plan.keys * 2 * d);
  if (stage.attention == VilAttention::kLongShort) {
    CarveLongShort(context, stage, plan, carver, b);
  } else if (plan.has_slices()) {
    b.globals = CarveOpenRows(GlobalRows(stage), context, band, carver);
  }
  b.workspace = carver.TakeBytes(WorkspaceOf(context, index, plan));
  return b;
}

}  // namespace

OpenRowsShape GlobalRows(const VilStage& stage) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(stage.head_dim()));
  return {stage.globals, stage.heads, stage.width, scale};
}

std::vector<kernels::Table> LocalTables(std::span<const VilMapCache::Entry> maps, int heads,
                                        int block) {
  std::vector<kernels::Table> tables;
  for (const VilMapCache::Entry& map : maps) tables.push_back(Added(map->tables[block], heads));
  return tables;
}

VilCall::VilCall(const VilContext& context, size_t stage_index, const VilAttentionPlan& plan,
                 int block, const VilBuffers& buffers, bool separate_globals) {
  const VilStage& stage = context.config->stages[stage_index];
  const int64_t d = stage.width;
  call_.dtype = SpanType(context.compute);
  const bool alone = separate_globals || stage.attention == VilAttention::kReduction;
  call_.q = separate_globals ? buffers.global_q : buffers.qkv;
  call_.q_row_stride = alone ? d : 3 * d;
  call_.out = buffers.rows;
  call_.out_row_stride = d;
  call_.q_head_stride = call_.out_head_stride = stage.head_dim();
  call_.Dk = call_.Dv = stage.head_dim();
  call_.H = stage.heads;
  call_.scale = 1.0f / std::sqrt(static_cast<float>(stage.head_dim()));
  sources_.resize(plan.plan.sources.size());
  SetSources(context, stage, buffers, separate_globals);
  call_.sources = sources_;
  if (block < 0 || !stage.relative_bias()) return;
  const VilBias& bias = context.weights->stages[stage_index].blocks[block].bias;
  tables_.push_back(Added(bias.mixed, stage.heads));
  tables_.push_back(Added(bias.global, stage.heads));
  for (const kernels::Table& table : LocalTables(plan.maps, stage.heads, block)) {
    tables_.push_back(table);
  }
  call_.tables = tables_;
}

void VilCall::SetSources(const VilContext& context, const VilStage& stage,
                         const VilBuffers& buffers, bool separate_globals) {
  const int64_t d = stage.width;
  kernels::Source tokens;
  tokens.dtype = SpanType(context.compute);
  tokens.k_head_stride = tokens.v_head_stride = stage.head_dim();
  if (ProjectedKeys(stage, {stage.features, stage.features}) > 0) {
    tokens.dtype = kernels::DType::kFloat32;
    tokens.k = buffers.keys;
    tokens.v = buffers.keys == nullptr ? nullptr : buffers.keys + d;
    tokens.k_row_stride = tokens.v_row_stride = 2 * d;
  } else if (separate_globals) {
    tokens.k = buffers.global_kv;
    tokens.v = Column(buffers.global_kv, d, context.compute);
    tokens.k_row_stride = tokens.v_row_stride = 2 * d;
  } else {
    tokens.k = Column(buffers.qkv, d, context.compute);
    tokens.v = Column(buffers.qkv, 2 * d, context.compute);
    tokens.k_row_stride = tokens.v_row_stride = 3 * d;
  }
  std::fill(sources_.begin(), sources_.end(), tokens);
  // The cyclic rule's third source: padding, whose keys and values are zero.
  if (sources_.size() < 3) return;
  zeros_.resize(d);
  kernels::Source& padding = sources_[2];
  padding.k = padding.v = zeros_.data();
  padding.dtype = kernels::DType::kFloat32;
  padding.k_row_stride = padding.v_row_stride = 0;
}

kernels::PerformerCall MakePerformerCall(const VilContext& context, const VilStage& stage,
                                         const VilStagePlan& plan, const VilBuffers& buffers) {
  const int64_t d = stage.width;
  kernels::PerformerCall call;
  call.q = buffers.qkv;
  call.k = Column(buffers.qkv, d, context.compute);
  call.v = Column(buffers.qkv, 2 * d, context.compute);
  call.out = buffers.rows;
  call.dtype = SpanType(context.compute);
  call.row_stride = 3 * d;
  call.out_row_stride = d;
  call.heads = stage.heads;
  call.width = stage.head_dim();
  call.features = stage.features;
  call.offsets = plan.offsets;
  return call;
}

// Residual streams of even stages lie at the front of the block, of odd ones at its end; what a
// stage works with lies between its stream and the other end.
VilBatchBuffers CarveVilBuffers(const VilContext& context, std::span<const VilStagePlan> plans,
                                Carver& carver) {
  const VilConfig& config = *context.config;
  int64_t patch = 0;
  size_t total = 0;
  std::vector<size_t> streams;
  for (size_t s = 0; s < plans.size(); ++s) {
    const VilStage& stage = config.stages[s];
    const int64_t c = s == 0 ? config.channels : config.stages[s - 1].width;
    patch = std::max(patch, c * stage.patch * stage.patch);
    streams.push_back(kernels::AlignUp(plans[s].rows * stage.width * sizeof(float)));
    Carver measure(nullptr);
    CarveStage(context, s, plans[s], measure);
    total = std::max(total, streams[s] + measure.used());
    if (s > 0) total = std::max(total, streams[s - 1] + streams[s]);
  }
  VilBatchBuffers buffers;
  buffers.panel =
      carver.TakeBytes(static_cast<size_t>(kPanelRows * patch * ElementBytes(context.compute)));
  std::byte* const base = carver.TakeBytes(total);
  for (size_t s = 0; base != nullptr && s < plans.size(); ++s) {
    Carver rest(s % 2 == 0 ? base + streams[s] : base);
    VilBuffers& stage = buffers.stages.emplace_back(CarveStage(context, s, plans[s], rest));
    stage.x = reinterpret_cast<float*>(s % 2 == 0 ? base : base + total - streams[s]);
  }
  return buffers;
}

}  // namespace longview::models
