#include "models/vil/buffers.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "models/layers/span_rows.h"

namespace longview::models {
namespace {

kernels::Table Added(std::span<const float> values, int heads) {
  kernels::Table table;
  table.data = values.data();
  table.entries = static_cast<int32_t>(values.size()) / heads;
  table.head_stride = table.entries;
  return table;
}

// Bytes of workspace that a stage's attention takes; long-short attention says so itself.
size_t WorkspaceOf(const VilContext& context, size_t index, const VilStagePlan& plan) {
  const VilStage& stage = context.config->stages[index];
  const int threads = context.pool->threads();
  const VilBuffers none;
  if (stage.attention == VilAttention::kPerformer) {
    return MeasurePerformer(MakePerformerCall(context, stage, plan, none)).total(threads);
  }
  size_t bytes = 0;
  const auto measure = [&](const VilAttentionPlan& attention, bool separate) {
    if (attention.empty()) return;
    const VilCall call(context, index, attention, -1, none, separate);
    const kernels::Plan& planned = attention.made->plan;
    bytes = std::max(bytes, Measure(planned, call.call(), context.isa).total(threads));
  };
  for (const VilBand& band : plan.bands) measure(band.attention, false);
  measure(plan.globals, true);
  return bytes;
}

}  // namespace

OpenRowsShape GlobalRows(const VilStage& stage) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(stage.head_dim()));
  return {stage.globals, stage.heads, stage.width, scale};
}

std::vector<kernels::Table> LocalTables(std::span<const VilMapEntry> maps, int heads, int block) {
  std::vector<kernels::Table> tables;
  for (const VilMapEntry& map : maps) tables.push_back(Added(map->tables[block], heads));
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
  sources_.resize(plan.made->plan.sources.size());
  SetSources(context, stage, buffers, separate_globals);
  call_.sources = sources_;
  if (block < 0 || !stage.relative_bias()) return;
  const VilBias& bias = context.weights->stages[stage_index].blocks[block].bias;
  tables_.push_back(Added(AllOf(bias.mixed), stage.heads));
  tables_.push_back(Added(AllOf(bias.global), stage.heads));
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

VilBuffers CarveVilStage(const VilContext& context, size_t index, const VilStagePlan& plan,
                         Carver& carver) {
  const VilStage& stage = context.config->stages[index];
  const bool long_short = stage.attention == VilAttention::kLongShort;
  LongShortSizes sizes;
  if (long_short) sizes = MeasureLongShort(LongShortOf(stage), plan.long_short, 1, context);
  const int64_t d = stage.width, band = long_short ? sizes.rows() : plan.band_rows();
  const auto take = [&](int64_t count) {
    return carver.TakeBytes(static_cast<size_t>(count * ElementBytes(context.compute)));
  };
  VilBuffers b;
  b.rows = take((band + kPanelRows) * d);
  b.qkv = take(band * 3 * d);
  if (!plan.globals.empty()) {
    b.global_q = take(plan.rows * d);
    b.global_kv = take(plan.rows * 2 * d);
  }
  b.keys = carver.Take<float>(plan.keys * 2 * d);
  b.scores = carver.Take<float>(sizes.scores);
  b.outputs = carver.TakeBytes(sizes.outputs);
  b.long_short = carver.TakeBytes(sizes.landmarks);
  if (plan.has_slices()) b.globals = CarveOpenRows(GlobalRows(stage), context, band, carver);
  b.workspace = carver.TakeBytes(long_short ? sizes.workspace : WorkspaceOf(context, index, plan));
  return b;
}

}  // namespace longview::models
