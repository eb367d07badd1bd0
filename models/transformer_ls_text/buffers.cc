#include "models/transformer_ls_text/buffers.h"

#include <algorithm>
#include <cmath>

#include "models/layers/span_rows.h"

namespace longview::models {
namespace {

kernels::Source HeadsSource(const LsTextContext& context, std::byte* k, std::byte* v,
                            int64_t row_stride) {
  return RowsSource(k, v, context.compute, row_stride, context.config->head_dim());
}

// Keys and values of tokens and class rows.
kernels::Source QkvSource(const LsTextContext& context, const LsTextBuffers& buffers) {
  const int64_t width = context.config->width;
  return HeadsSource(context, Column(buffers.qkv, width, context.compute),
                     Column(buffers.qkv, 2 * width, context.compute), 3 * width);
}

kernels::Call HeadsCall(const LsTextContext& context, const LsTextBuffers& buffers) {
  const LsTextConfig& config = *context.config;
  kernels::Call call;
  call.dtype = SpanType(context.compute);
  call.q = buffers.qkv;
  call.out = buffers.z;
  call.q_row_stride = 3 * config.width;
  call.out_row_stride = config.width;
  call.q_head_stride = call.out_head_stride = config.head_dim();
  call.Dk = call.Dv = config.head_dim();
  call.H = config.heads;
  call.scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim()));
  return call;
}

}  // namespace

kernels::Call LsTokenCall(const LsTextContext& context, const LsTextBuffers& buffers,
                          std::vector<kernels::Source>& sources) {
  const int64_t width = context.config->width;
  sources = {HeadsSource(context, buffers.projected,
                         Column(buffers.projected, width, context.compute), 2 * width),
             QkvSource(context, buffers)};
  kernels::Call call = HeadsCall(context, buffers);
  call.sources = sources;
  return call;
}

kernels::Call LsClassCall(const LsTextContext& context, const LsTextBuffers& buffers,
                          std::vector<kernels::Source>& sources) {
  sources = {QkvSource(context, buffers),
             HeadsSource(context, buffers.z, buffers.z, context.config->width)};
  kernels::Call call = HeadsCall(context, buffers);
  call.sources = sources;
  return call;
}

kernels::PoolCall LsPoolCall(const LsTextContext& context, const LsTextBuffers& buffers,
                             std::span<const int32_t> offsets,
                             std::vector<kernels::PoolValue>& values) {
  const LsTextConfig& config = *context.config;
  kernels::PoolValue value;
  value.dtype = SpanType(context.compute);
  value.row_stride = 3 * config.width;
  value.head_stride = config.head_dim();
  value.width = config.head_dim();
  values.assign(2, value);
  values[0].data = Column(buffers.qkv, config.width, context.compute);
  values[0].out = buffers.pooled_keys;
  values[1].data = Column(buffers.qkv, 2 * config.width, context.compute);
  values[1].out = buffers.pooled_values;
  kernels::PoolCall call;
  call.scores = buffers.scores;
  call.score_stride = config.columns();
  call.columns = config.columns();
  call.columns_per_head = std::max(config.rank, 1);
  call.offsets = offsets;
  call.values = values;
  return call;
}

void LsTextSizes::Include(const LsTextContext& context, const LsTextPlan& plan,
                          std::span<const int32_t> offsets) {
  const int threads = context.pool->threads();
  rows = std::max(rows, plan.rows());
  tokens = std::max(tokens, plan.token_rows);
  sequences = std::max(sequences, plan.sequences);
  projected_rows = std::max(projected_rows, plan.projected_rows());
  const LsTextBuffers none;
  std::vector<kernels::Source> sources;
  const auto include = [&](const kernels::Plan& attention, const kernels::Call& call) {
    if (attention.items.empty()) return;
    workspace = std::max(workspace, Measure(attention, call, context.isa).total(threads));
  };
  include(plan.tokens, LsTokenCall(context, none, sources));
  include(plan.class_rows, LsClassCall(context, none, sources));
  if (context.config->rank == 0) return;
  std::vector<kernels::PoolValue> values;
  const kernels::PoolCall pool = LsPoolCall(context, none, offsets, values);
  workspace = std::max(workspace, MeasurePool(pool).total(threads));
}

LsTextBuffers CarveLsTextBuffers(const LsTextContext& context, const LsTextSizes& sizes,
                                 Carver& carver) {
  const LsTextConfig& config = *context.config;
  const int64_t width = config.width;
  const int64_t element = ElementBytes(context.compute);
  const auto take = [&](int64_t rows, int64_t columns) {
    return carver.TakeBytes(static_cast<size_t>(rows * columns * element));
  };
  const int64_t pooled = sizes.sequences * config.columns() * config.head_dim();
  LsTextBuffers b;
  b.x = carver.Take<float>((sizes.rows + kPanelRows) * width);
  b.input = take(sizes.rows + kPanelRows, width);
  b.qkv = take(sizes.rows, 3 * width);
  b.scores = carver.Take<float>(sizes.tokens * config.columns());
  b.pooled_keys = carver.Take<float>(pooled);
  b.pooled_values = carver.Take<float>(pooled);
  b.projected = take(sizes.projected_rows, 2 * width);
  b.z = take(sizes.rows + kPanelRows, width);
  b.thread_rows = carver.Take<float>(2 * width * context.pool->threads());
  b.workspace = carver.TakeBytes(sizes.workspace);
  return b;
}

}  // namespace longview::models
