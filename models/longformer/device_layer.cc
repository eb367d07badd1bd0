#include "models/longformer/device_layer.h"

#include <cmath>

#include "models/layers/span_rows.h"

namespace longview::models {

kernels::DType DeviceLayers::dtype() const { return SpanType(context_.compute); }

void DeviceLayers::Copy(const kernels::cuda::CopyRows& rows) const {
  context_.device->Check(context_.device->api().rows.copy(context_.device->stream(), rows),
                         "copying rows");
}

void DeviceLayers::Embed() const {
  const DeviceLongformerWeights& weights = *context_.weights;
  const DeviceBatch::Tokens& tokens = batch_.tokens();
  const bool copies = context_.compute != Compute::kFp32;
  const kernels::cuda::EmbedRows args = {weights.words,
                                         weights.positions,
                                         weights.types,
                                         tokens.ids,
                                         tokens.positions,
                                         tokens.types,
                                         weights.embedding_norm.view(),
                                         buffers_.x,
                                         copies ? buffers_.input : nullptr,
                                         batch_.rows(),
                                         context_.config->width,
                                         dtype()};
  context_.device->Check(context_.device->api().rows.embed(context_.device->stream(), args),
                         "embeddings");
}

void DeviceLayers::ProjectLocal(int layer) const {
  const LayerPlan& plan = batch_.PlanOf(layer).host;
  const DeviceLinear& qkv = LayerOf(layer).qkv;
  if (plan.locals == 0) return;
  const std::byte* input = buffers_.input;
  const auto bytes = static_cast<int32_t>(row_bytes());
  if (!plan.whole) {
    Copy({input, buffers_.z, batch_.PlanOf(layer).local_rows, nullptr, plan.locals, bytes,
          row_bytes(), row_bytes()});
    input = buffers_.z;
  }
  MultiplyRows(*context_.device, qkv, input, plan.locals, buffers_.qkv);
  AddBias(*context_.device, qkv, buffers_.qkv, plan.locals, Activation::kNone);
  if (plan.whole) return;
  Copy({buffers_.qkv, buffers_.queries, batch_.PlanOf(layer).query_rows, nullptr, plan.outputs,
        bytes, 3 * row_bytes(), row_bytes()});
}

kernels::cuda::SpanCall DeviceLayers::HeadsCall() const {
  return DeviceHeadsCall(context_.compute, context_.config->heads, context_.config->head_dim());
}

void DeviceLayers::AttendLocal(int layer) const {
  const DeviceLayerPlan& plan = batch_.PlanOf(layer);
  const int width = context_.config->width;
  kernels::cuda::SpanCall call = HeadsCall();
  call.q = plan.host.whole ? buffers_.qkv : buffers_.queries;
  if (plan.host.whole) call.q_row_stride = 3 * width;
  call.out = buffers_.z;
  call.sources_used = static_cast<int32_t>(plan.host.band.sources.size());
  for (int s = 0; s < call.sources_used; ++s) {
    call.sources[s] = DeviceHeadsSource(buffers_.qkv + row_bytes(), buffers_.qkv + 2 * row_bytes(),
                                        3 * width, context_.config->head_dim());
  }
  Attend(*context_.device, plan.band, call, buffers_.partials);
}

void DeviceLayers::ProjectGlobalQueries(int layer, const int32_t* rows, int64_t count) const {
  Copy({buffers_.input, buffers_.global_inputs, rows, nullptr, count,
        static_cast<int32_t>(row_bytes()), row_bytes(), row_bytes()});
  MultiplyRows(*context_.device, LayerOf(layer).query_global, buffers_.global_inputs, count,
               buffers_.global_queries);
}

void DeviceLayers::AttendFolded(int layer, const FoldBatch& fold) const {
  const Device& device = *context_.device;
  const kernels::cuda::RowsApi& rows = device.api().rows;
  const DeviceLongformerLayer& weights = LayerOf(layer);
  const int width = context_.config->width;
  ProjectGlobalQueries(layer, fold.rows, fold.globals());
  device.Check(rows.widen(device.stream(), {buffers_.global_queries, weights.query_global.bias,
                                            buffers_.global_rows, fold.globals(), width, dtype()}),
               "global queries");
  const float scale = 1.0f / std::sqrt(static_cast<float>(context_.config->head_dim()));
  device.Check(rows.fold_keys(device.stream(), {fold.shape, buffers_.global_rows,
                                                weights.key_global, scale, buffers_.fold_vectors}),
               "folded keys");
  device.Check(
      rows.fold_scores(device.stream(), {fold.shape, buffers_.x, buffers_.fold_vectors, fold.begins,
                                         fold.ends, fold.longest, buffers_.fold_scores}),
      "folded scores");
  const auto columns = static_cast<int32_t>(fold.columns());
  const kernels::cuda::PoolPieces pieces = {
      {buffers_.fold_scores, columns, columns, columns, batch_.tokens().roles},
      {buffers_.x, width, 0, width, kernels::DType::kFloat32},
      fold.piece_list,
      fold.pieces,
      buffers_.fold_sums};
  device.Check(device.api().pool.pieces(device.stream(), pieces), "pooling");
  device.Check(device.api().pool.merge(
                   device.stream(), {buffers_.fold_sums, fold.piece0, fold.shape.sequences, columns,
                                     width, buffers_.fold_means}),
               "merging pools");
  device.Check(
      rows.fold_values(device.stream(),
                       {fold.shape, buffers_.fold_means, weights.value_global,
                        weights.key_value_global.bias + width, fold.out_rows, buffers_.z, dtype()}),
      "folded values");
}

void DeviceLayers::AttendUnfolded(int layer) const {
  const DeviceLayerPlan& plan = batch_.PlanOf(layer);
  const Device& device = *context_.device;
  const DeviceLongformerLayer& weights = LayerOf(layer);
  const auto count = static_cast<int64_t>(plan.host.unfolded.size());
  ProjectGlobalQueries(layer, plan.unfolded_rows, count);
  AddBias(device, weights.query_global, buffers_.global_queries, count, Activation::kNone);
  // A panel's tail runs into the next group's keys, which come later.
  for (const GlobalGroup& group : plan.host.unfolded_groups) {
    std::byte* keys = buffers_.global_keys + group.key_row0 * 2 * row_bytes();
    MultiplyRows(device, weights.key_value_global, buffers_.input + group.row0 * row_bytes(),
                 group.tokens, keys);
  }
  AddBias(device, weights.key_value_global, buffers_.global_keys, plan.host.global_key_rows,
          Activation::kNone);
  kernels::cuda::SpanCall call = HeadsCall();
  call.q = buffers_.global_queries;
  call.out = buffers_.global_out;
  call.sources_used = 1;
  call.sources[0] = DeviceHeadsSource(buffers_.global_keys, buffers_.global_keys + row_bytes(),
                                      2 * context_.config->width, context_.config->head_dim());
  Attend(device, plan.full, call, buffers_.partials);
  Copy({buffers_.global_out, buffers_.z, nullptr, plan.unfolded_outs, count,
        static_cast<int32_t>(row_bytes()), row_bytes(), row_bytes()});
}

void DeviceLayers::AttendGlobal(int layer) const {
  const DeviceLayerPlan& plan = batch_.PlanOf(layer);
  for (const FoldBatch& fold : plan.folds) AttendFolded(layer, fold);
  if (!plan.host.unfolded.empty()) AttendUnfolded(layer);
}

void DeviceLayers::AddResidual(float* x, const DeviceLinear& linear, const DeviceNorm& norm,
                               int64_t rows, std::byte* copy) const {
  const Device& device = *context_.device;
  const kernels::cuda::ResidualRows args = {x,
                                            buffers_.qkv,
                                            linear.bias,
                                            norm.view(),
                                            context_.compute == Compute::kFp32 ? nullptr : copy,
                                            rows,
                                            context_.config->width,
                                            dtype()};
  device.Check(device.api().rows.residual(device.stream(), args), "a residual");
}

void DeviceLayers::Tail(int layer) const {
  const DeviceLayerPlan& plan = batch_.PlanOf(layer);
  const DeviceLongformerLayer& weights = LayerOf(layer);
  const Device& device = *context_.device;
  const int64_t rows = plan.host.outputs;
  float* x = plan.host.whole ? buffers_.x : buffers_.kept;
  std::byte* input = plan.host.whole ? buffers_.input : buffers_.kept_input;
  if (!plan.host.whole) {
    const int64_t bytes = context_.config->width * int64_t{sizeof(float)};
    Copy({buffers_.x, buffers_.kept, plan.out_rows, nullptr, rows, static_cast<int32_t>(bytes),
          bytes, bytes});
  }
  MultiplyRows(device, weights.out, buffers_.z, rows, buffers_.qkv);
  AddResidual(x, weights.out, weights.attention_norm, rows, input);
  MultiplyRows(device, weights.expand, input, rows, buffers_.wide);
  AddBias(device, weights.expand, buffers_.wide, rows, context_.config->activation);
  MultiplyRows(device, weights.contract, buffers_.wide, rows, buffers_.qkv);
  AddResidual(x, weights.contract, weights.output_norm, rows, input);
}

const float* DeviceLayers::Output() const {
  return batch_.PlanOf(context_.config->layers - 1).host.whole ? buffers_.x : buffers_.kept;
}

}  // namespace longview::models
