#include "models/vil/buffers.h"

#include <algorithm>
#include <cmath>

#include "models/layers/span_rows.h"

namespace longview::models {
namespace {

kernels::Table Added(const std::vector<float>& values, int heads) {
  kernels::Table table;
  table.data = values.data();
  table.entries = static_cast<int32_t>(values.size()) / heads;
  table.head_stride = table.entries;
  return table;
}

// Bytes of workspace that a stage's attention takes.
size_t WorkspaceOf(const VilContext& context, size_t index, const VilStagePlan& plan) {
  const VilStage& stage = context.config->stages[index];
  const int threads = context.pool->threads();
  const VilBuffers none;
  if (stage.attention == VilAttention::kPerformer) {
    return MeasurePerformer(MakePerformerCall(context, stage, plan, none)).total(threads);
  }
  if (stage.attention == VilAttention::kLongShort) {
    return LongShortWorkspace(LongShortOf(stage), plan.long_short, context.device());
  }
  size_t bytes = 0;
  for (const bool separate : {false, true}) {
    const kernels::Plan& attention = separate ? plan.globals : plan.attention;
    if (attention.items.empty()) continue;
    const VilCall call(context, index, plan, -1, none, separate);
    bytes = std::max(bytes, Measure(attention, call.call(), context.isa).total(threads));
  }
  return bytes;
}

}  // namespace

std::vector<kernels::Table> LocalTables(const VilStagePlan& plan, int heads, int block) {
  std::vector<kernels::Table> tables;
  for (const VilMapCache::Entry& map : plan.maps)
    tables.push_back(Added(map->tables[block], heads));
  return tables;
}

VilCall::VilCall(const VilContext& context, size_t stage_index, const VilStagePlan& plan, int block,
                 const VilBuffers& buffers, bool separate_globals) {
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
  sources_.resize((separate_globals ? plan.globals : plan.attention).sources.size());
  SetSources(context, stage, buffers, separate_globals);
  call_.sources = sources_;
  if (block < 0 || !stage.relative_bias()) return;
  const VilBias& bias = context.weights->stages[stage_index].blocks[block].bias;
  tables_.push_back(Added(bias.mixed, stage.heads));
  tables_.push_back(Added(bias.global, stage.heads));
  for (const kernels::Table& table : LocalTables(plan, stage.heads, block)) {
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

VilBuffers CarveVilBuffers(const VilContext& context, std::span<const VilStagePlan> plans,
                           Carver& carver) {
  const VilConfig& config = *context.config;
  int64_t residual[2] = {}, patch = 0, rows = 0, qkv = 0, globals = 0, keys = 0, scores = 0;
  size_t workspace = 0, long_short = 0;
  for (size_t s = 0; s < plans.size(); ++s) {
    const VilStage& stage = config.stages[s];
    const VilStagePlan& plan = plans[s];
    const int64_t d = stage.width;
    const int64_t c = s == 0 ? config.channels : config.stages[s - 1].width;
    residual[s % 2] = std::max(residual[s % 2], plan.rows * d);
    patch = std::max(patch, c * stage.patch * stage.patch);
    rows = std::max(rows, (plan.rows + kPanelRows) * d);
    qkv = std::max(qkv, plan.rows * 3 * d);
    keys = std::max(keys, plan.keys * 2 * d);
    if (!plan.globals.items.empty()) globals = std::max(globals, plan.rows * d);
    workspace = std::max(workspace, WorkspaceOf(context, s, plan));
    if (stage.attention != VilAttention::kLongShort) continue;
    scores = std::max(scores, plan.rows * LongShortOf(stage).columns());
    long_short =
        std::max(long_short, LongShortBytes(LongShortOf(stage), plan.long_short, context.device()));
  }
  const int64_t element = ElementBytes(context.compute);
  const auto take = [&](int64_t count) {
    return carver.TakeBytes(static_cast<size_t>(count * element));
  };
  VilBuffers b;
  b.x[0] = carver.Take<float>(residual[0]);
  b.x[1] = carver.Take<float>(residual[1]);
  b.panel = take(kPanelRows * patch);
  b.rows = take(rows);
  b.qkv = take(qkv);
  b.global_q = take(globals);
  b.global_kv = take(2 * globals);
  b.keys = carver.Take<float>(keys);
  b.scores = carver.Take<float>(scores);
  b.long_short = carver.TakeBytes(long_short);
  b.workspace = carver.TakeBytes(workspace);
  return b;
}

}  // namespace longview::models
