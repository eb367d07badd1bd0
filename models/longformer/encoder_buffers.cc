#include "models/longformer/encoder_buffers.h"

#include <algorithm>
#include <cmath>

#include "kernels/pool/segment_pool.h"
#include "models/layers/span_rows.h"

namespace longview::models {
namespace {

kernels::Call HeadsCall(const EncoderContext& context) {
  const LongformerConfig& config = *context.config;
  kernels::Call call;
  call.dtype = SpanType(context.compute);
  call.q_head_stride = call.out_head_stride = config.head_dim();
  call.q_row_stride = call.out_row_stride = config.width;
  call.Dk = call.Dv = config.head_dim();
  call.H = config.heads;
  call.scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim()));
  return call;
}

kernels::Source HeadsSource(const EncoderContext& context, std::byte* k, std::byte* v,
                            int64_t row_stride) {
  return RowsSource(k, v, context.compute, row_stride, context.config->head_dim());
}

}  // namespace

kernels::Call BandCall(const EncoderContext& context, const LayerPlan& plan,
                       const EncoderBuffers& buffers, std::vector<kernels::Source>& sources) {
  const int64_t width = context.config->width;
  sources.assign(plan.band.sources.size(),
                 HeadsSource(context, Column(buffers.qkv, width, context.compute),
                             Column(buffers.qkv, 2 * width, context.compute), 3 * width));
  kernels::Call call = HeadsCall(context);
  call.q = plan.whole ? buffers.qkv : buffers.queries;
  if (plan.whole) call.q_row_stride = 3 * width;
  call.out = buffers.z;
  call.sources = sources;
  return call;
}

kernels::Call GlobalCall(const EncoderContext& context, const EncoderBuffers& buffers,
                         std::vector<kernels::Source>& sources) {
  const int64_t width = context.config->width;
  sources.assign(1, HeadsSource(context, buffers.global_keys,
                                Column(buffers.global_keys, width, context.compute), 2 * width));
  kernels::Call call = HeadsCall(context);
  call.q = buffers.global_queries;
  call.out = buffers.global_out;
  call.sources = sources;
  return call;
}

void EncoderSizes::Include(const EncoderContext& context, const LayerPlan& plan) {
  const int threads = context.pool->threads();
  rows = std::max(rows, plan.inputs);
  if (!plan.whole) subset_outputs = std::max(subset_outputs, plan.outputs);
  global_rows = std::max<int64_t>(
      global_rows, static_cast<int64_t>(std::max(plan.folded.size(), plan.unfolded.size())));
  global_key_rows = std::max(global_key_rows, plan.global_key_rows);
  for (const GlobalGroup& group : plan.folded_groups) {
    const int64_t columns = int64_t{group.count} * context.config->heads;
    fold_columns = std::max(fold_columns, columns);
    fold_scores = std::max(fold_scores, columns * group.tokens);
  }
  const EncoderBuffers none;
  std::vector<kernels::Source> sources;
  const auto include = [&](const kernels::Plan& attention, const kernels::Call& call) {
    if (attention.items.empty()) return;
    workspace = std::max(workspace, Measure(attention, call, context.isa).total(threads));
  };
  include(plan.band, BandCall(context, plan, none, sources));
  include(plan.full, GlobalCall(context, none, sources));
  workspace = std::max(workspace, static_cast<size_t>(fold_scores) * sizeof(float));
}

EncoderBuffers CarveBuffers(const EncoderContext& context, const EncoderSizes& sizes,
                            Carver& carver) {
  const int64_t width = context.config->width;
  const int64_t element = ElementBytes(context.compute);
  const auto take = [&](int64_t rows, int64_t columns) {
    return carver.TakeBytes(static_cast<size_t>(rows * columns * element));
  };
  EncoderBuffers b;
  b.x = carver.Take<float>((sizes.rows + kPanelRows) * width);
  b.input = context.compute == Compute::kFp32 ? reinterpret_cast<std::byte*>(b.x)
                                              : take(sizes.rows + kPanelRows, width);
  b.qkv = take(sizes.rows, 3 * width);
  b.z = take(sizes.rows + kPanelRows, width);
  b.queries = take(sizes.subset_outputs, width);
  b.global_keys = take(sizes.global_key_rows, 2 * width);
  b.global_rows = carver.Take<float>(sizes.global_rows * width);
  b.global_queries = take(sizes.global_rows > 0 ? sizes.global_rows + kPanelRows : 0, width);
  b.global_out = take(sizes.global_rows, width);
  b.fold_vectors = carver.Take<float>(sizes.fold_columns * width);
  b.fold_scores = carver.Take<float>(sizes.fold_scores);
  b.fold_means = carver.Take<float>(sizes.fold_columns * width);
  b.embedding_rows = carver.Take<float>(3 * width * context.pool->threads());
  b.workspace = carver.TakeBytes(sizes.workspace);
  return b;
}

}  // namespace longview::models
