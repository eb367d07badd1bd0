#include "models/cst/device_part.h"

#include <algorithm>

#include "kernels/cuda/span/launch_shape.h"
#include "models/device/device_tail.h"
#include "models/layers/span_rows.h"

namespace longview::models {

DeviceCstPart::DeviceCstPart(const Context& context, Sequences sequences)
    : DeviceEncoderPart(sequences),
      context_(context),
      config_(*context.config),
      width_(config_.width),
      rows_(*context.device, context.compute, config_.width),
      plan_(PlanCst(config_, batch(), kernels::cuda::kDeviceTileRows)),
      wanted_(static_cast<int64_t>(WantedRows().size())) {
  Count({&plan_.tokens, &plan_.slices}, wanted_, width_);
}

bool DeviceCstPart::has_input() const {
  return config_.norms == NormPlace::kPre || context_.compute != Compute::kFp32;
}

void DeviceCstPart::Stage(StagedLists& lists) {
  lists_.tokens = StageTokens(lists);
  lists_.token_plan = StagePlan(plan_.tokens, lists);
  lists_.slice_plan = StagePlan(plan_.slices, lists);
  lists_.slice_of_row = lists.Add(plan_.slice_of_row);
  lists_.wanted_rows = lists.Add(WantedRows());
  const int64_t places = config_.multi_scale() ? config_.slice : 1;
  std::vector<int32_t> token_entries;
  for (int64_t row = 0; row < plan_.rows(); ++row) {
    token_entries.push_back(static_cast<int32_t>(std::min(plan_.PlaceOf(row), places - 1)));
  }
  lists_.token_entries = lists.Add(token_entries);
  const int32_t numbers = config_.multi_scale() ? config_.most_slices() : 1;
  std::vector<kernels::cuda::SliceRows> slices;
  std::vector<int32_t> slice_entries, pooled_rows, pooled_places, pool_entries;
  for (const CstSlice& slice : plan_.slice_list) {
    const auto s = static_cast<int32_t>(slices.size());
    slices.push_back({slice.row0, slice.rows, slice.visible});
    slice_entries.push_back(std::min(slice.number, numbers - 1));
    pool_entries.push_back(slice.visible > 0 ? 0 : -1);
    // Masked rows have places too, so that lists are as long whatever the masks.
    for (int32_t i = 0; i < slice.rows; ++i) {
      const bool visible = batch().roles()[static_cast<size_t>(slice.row0 + i)] != 0;
      pooled_rows.push_back(visible ? slice.row0 + i : -1);
      pooled_places.push_back(s * config_.slice + i);
    }
  }
  lists_.slices = lists.Add(slices);
  lists_.slice_entries = lists.Add(slice_entries);
  pooled_ = static_cast<int64_t>(pooled_rows.size());
  if (!pools_linearly()) return;
  lists_.pooled_rows = lists.Add(pooled_rows);
  lists_.pooled_places = lists.Add(pooled_places);
  lists_.pool_entries = lists.Add(pool_entries);
}

void DeviceCstPart::Carve(Carver& carver) {
  const int64_t padded = plan_.rows() + kDevicePanelTail, kept = wanted_ + kDevicePanelTail;
  const int64_t slice_rows = slices() + kDevicePanelTail;
  const auto take = [&](int64_t count, int64_t columns) {
    return carver.TakeBytes(static_cast<size_t>(count * columns * ElementBytes(context_.compute)));
  };
  const int dim = config_.head_dim();
  Buffers& b = buffers_;
  b.x = carver.Take<float>(padded * width_);
  b.kept = carver.Take<float>(kept * width_);
  b.input = has_input() ? take(padded, width_) : reinterpret_cast<std::byte*>(b.x);
  b.kept_input = has_input() ? b.input : reinterpret_cast<std::byte*>(b.kept);
  b.embedded_sums = b.x;
  if (config_.embedding_width != config_.width) {
    b.embedded_sums = carver.Take<float>(plan_.rows() * config_.embedding_width);
    b.embedded = take(padded, config_.embedding_width);
  }
  b.projected = take(padded, (attends() ? 3 : 1) * width_);
  b.z = take(padded, width_);
  b.kept_z = take(kept, width_);
  b.wide = take(padded, config_.intermediate);
  b.slice_input = take(slice_rows, width_);
  if (pools_linearly()) b.slice_tokens = take(slice_rows, config_.slice * width_);
  b.slice_qkv = take(slice_rows, 3 * width_);
  b.slice_z = take(slices(), width_);
  b.mixed = carver.Take<float>(int64_t{slices()} * config_.mixer_size * width_);
  b.partials = carver.TakeBytes(std::max(DevicePartialBytes(lists_.token_plan, dim),
                                         DevicePartialBytes(lists_.slice_plan, dim)));
}

void DeviceCstPart::Embed() {
  const DeviceCstWeights& weights = *context_.weights;
  const Device& device = *context_.device;
  const Buffers& b = buffers_;
  const int64_t count = plan_.rows();
  const kernels::cuda::EmbedSums sums = {
      weights.words,           weights.positions,       weights.types,
      lists_.tokens.ids,       lists_.tokens.positions, lists_.tokens.types,
      config_.embedding_scale, b.embedded_sums,         count,
      config_.embedding_width};
  device.Check(device.api().encoder.embed(device.stream(), sums), "embeddings");
  const DeviceRows embedded(device, context_.compute, config_.embedding_width);
  const DeviceNorm* norm = config_.embedding_norm ? &weights.embedding_norm : nullptr;
  if (norm != nullptr || b.embedded != nullptr) {
    embedded.Add(b.embedded_sums, nullptr, nullptr, norm, count, b.embedded);
  }
  if (b.embedded != nullptr) {
    MultiplyRows(device, weights.embedding_project, b.embedded, count, b.z);
    const kernels::cuda::WidenRows widen = {
        b.z, weights.embedding_project.bias, b.x, count, config_.width, SpanType(context_.compute)};
    device.Check(device.api().rows.widen(device.stream(), widen), "projected embeddings");
  }
  // What the first layer reads; later the layer before leaves it there.
  if (config_.norms == NormPlace::kPre) {
    rows_.Prenorm(b.x, LayerOf(0).attention_norm, count, b.input);
  } else if (has_input()) {
    rows_.Narrow(b.x, count, b.input);
  }
}

kernels::cuda::SpanCall DeviceCstPart::HeadsCall(std::byte* qkv, std::byte* out) const {
  kernels::cuda::SpanCall call =
      DeviceHeadsCall(context_.compute, config_.heads, config_.head_dim());
  call.q = qkv;
  call.q_row_stride = 3 * width_;
  call.out = out;
  call.sources_used = 1;
  call.sources[0] = DeviceHeadsSource(qkv + rows_.row_bytes(), qkv + 2 * rows_.row_bytes(),
                                      3 * width_, config_.head_dim());
  return call;
}

void DeviceCstPart::AttendTokens(int layer) const {
  const DeviceCstLayer& weights = LayerOf(layer);
  kernels::cuda::SpanCall call = HeadsCall(buffers_.projected, buffers_.z);
  if (const int64_t boundary = BoundaryRows(config_); boundary > 0) {
    call.sources[call.sources_used++] =
        DeviceHeadsSource(weights.boundary_keys, weights.boundary_values,
                          boundary == 1 ? 0 : width_, config_.head_dim());
  }
  if (config_.relative_keys()) {
    call.tables[0] = {weights.key_rows, nullptr,      config_.head_dim(),
                      width_,           call.element, config_.local_keys()};
  }
  Attend(*context_.device, lists_.token_plan, call, buffers_.partials);
}

// Rows of padding, which are of no slice, become zeros.
void DeviceCstPart::MixPlaces(int layer, std::byte* from) const {
  const Device& device = *context_.device;
  device.Check(device.api().fill_zero(device.stream(), buffers_.z,
                                      static_cast<uint64_t>(plan_.rows() * rows_.row_bytes())),
               "mixing places");
  const DeviceCstLayer& weights = LayerOf(layer);
  const kernels::cuda::MixSlices mix = {from,
                                        lists_.tokens.roles,
                                        lists_.slices,
                                        slices(),
                                        config_.width,
                                        config_.slice,
                                        config_.mixer_size,
                                        {weights.mixer_in, weights.mixer_in_bias},
                                        {weights.mixer_out, weights.mixer_out_bias},
                                        buffers_.mixed,
                                        buffers_.z,
                                        SpanType(context_.compute)};
  device.Check(device.api().encoder.mix_in(device.stream(), mix), "mixing places");
  device.Check(device.api().encoder.mix_out(device.stream(), mix), "mixed places");
}

void DeviceCstPart::AddPlaces(const DevicePlaceBias& bias, const int32_t* entries, int64_t rows,
                              std::byte* y) const {
  const Device& device = *context_.device;
  const kernels::cuda::PlaceBiases args = {y,    bias.values,       entries,
                                           rows, 3 * config_.width, SpanType(context_.compute)};
  device.Check(device.api().encoder.place_bias(device.stream(), args), "biases of places");
}

void DeviceCstPart::MixTokens(int layer, std::byte* from, const DeviceTimer& timer) const {
  if (!attends()) return timer.Run(&EncoderTimes::attention, [&] { MixPlaces(layer, from); });
  const DeviceCstLayer& weights = LayerOf(layer);
  timer.Run(&EncoderTimes::linears, [&] {
    MultiplyRows(*context_.device, weights.token_project, from, plan_.rows(), buffers_.projected);
    AddPlaces(weights.token_bias, lists_.token_entries, plan_.rows(), buffers_.projected);
  });
  timer.Run(&EncoderTimes::attention, [&] { AttendTokens(layer); });
}

void DeviceCstPart::Pool(const std::byte* from) const {
  const Device& device = *context_.device;
  const kernels::cuda::PoolSlices pool = {from,
                                          lists_.tokens.roles,
                                          lists_.slices,
                                          slices(),
                                          config_.width,
                                          config_.slice_pooling == CstPooling::kMax ? 1 : 0,
                                          buffers_.slice_input,
                                          SpanType(context_.compute)};
  device.Check(device.api().encoder.pool_slices(device.stream(), pool), "slices");
}

// A slice's tokens end to end through a linear; masked and absent ones are zeros.
void DeviceCstPart::PoolLinearly(int layer, const std::byte* from) const {
  const Device& device = *context_.device;
  const DeviceLinear& pool = LayerOf(layer).pool;
  const int64_t row = rows_.row_bytes();
  device.Check(device.api().fill_zero(device.stream(), buffers_.slice_tokens,
                                      static_cast<uint64_t>(slices() * config_.slice * row)),
               "slices");
  const kernels::cuda::CopyRows copies = {from,
                                          buffers_.slice_tokens,
                                          lists_.pooled_rows,
                                          lists_.pooled_places,
                                          pooled_,
                                          static_cast<int32_t>(row),
                                          row,
                                          row};
  device.Check(device.api().rows.copy(device.stream(), copies), "slices");
  MultiplyRows(device, pool, buffers_.slice_tokens, slices(), buffers_.slice_input);
  // Not even the bias of a slice without tokens.
  const kernels::cuda::PlaceBiases bias = {buffers_.slice_input, pool.bias,
                                           lists_.pool_entries,  slices(),
                                           config_.width,        SpanType(context_.compute)};
  device.Check(device.api().encoder.place_bias(device.stream(), bias), "slices");
}

void DeviceCstPart::AttendSlices(int layer, std::byte* from, const DeviceTimer& timer) const {
  const DeviceCstLayer& weights = LayerOf(layer);
  const Buffers& b = buffers_;
  if (!pools_linearly()) timer.Run(&EncoderTimes::attention, [&] { Pool(from); });
  timer.Run(&EncoderTimes::linears, [&] {
    if (pools_linearly()) PoolLinearly(layer, from);
    MultiplyRows(*context_.device, weights.slice_project(), b.slice_input, slices(), b.slice_qkv);
    AddPlaces(weights.slice_bias, lists_.slice_entries, slices(), b.slice_qkv);
  });
  timer.Run(&EncoderTimes::attention, [&] {
    Attend(*context_.device, lists_.slice_plan, HeadsCall(b.slice_qkv, b.slice_z), b.partials);
  });
}

void DeviceCstPart::AddSlices(const std::byte* from, std::byte* to) const {
  const Device& device = *context_.device;
  const kernels::cuda::AddedRows sums = {
      from,         buffers_.slice_z, lists_.slice_of_row,       to,
      plan_.rows(), config_.width,    SpanType(context_.compute)};
  device.Check(device.api().encoder.add(device.stream(), sums), "slices to tokens");
}

void DeviceCstPart::AttendLayer(int layer, const DeviceTimer& timer) const {
  const Buffers& b = buffers_;
  switch (config_.order) {
    case CstOrder::kComposition:
      MixTokens(layer, b.input, timer);
      AttendSlices(layer, b.z, timer);
      break;
    case CstOrder::kParallel:
      AttendSlices(layer, b.input, timer);
      MixTokens(layer, b.input, timer);
      break;
    case CstOrder::kGlobalFirst: {
      std::byte* const sums = attends() ? b.z : b.projected;
      AttendSlices(layer, b.input, timer);
      AddSlices(b.input, sums);
      MixTokens(layer, sums, timer);
      break;
    }
  }
  AddSlices(b.z, b.z);
}

void DeviceCstPart::Finish(int layer) const {
  const DeviceCstWeights& weights = *context_.weights;
  const DeviceCstLayer& own = LayerOf(layer);
  const Buffers& b = buffers_;
  const bool last = layer + 1 == config_.layers;
  const bool post = config_.norms == NormPlace::kPost;
  DeviceTail tail;
  tail.out = config_.output_projection ? &own.out : nullptr;
  tail.after_attention = post ? &own.attention_norm : &own.ffn_norm;
  tail.expand = &own.expand;
  tail.contract = &own.contract;
  if (post) {
    tail.after_layer = &own.ffn_norm;
  } else if (!last) {
    tail.after_layer = &weights.layers[layer + 1].attention_norm;
  }
  if (last && config_.final_norm) tail.last = &weights.norm;
  tail.activation = config_.activation;
  tail.norms = config_.norms;
  DeviceTailRows rows = {b.x, b.input, b.z, b.wide, b.projected, plan_.rows()};
  if (last) {
    rows_.GatherFloats(b.x, lists_.wanted_rows, wanted_, b.kept);
    rows_.Gather(b.z, width_, lists_.wanted_rows, wanted_, b.kept_z);
    rows = {b.kept, b.kept_input, b.kept_z, b.wide, b.projected, wanted_};
  }
  RunDeviceTail(*context_.device, tail, rows);
}

void DeviceCstPart::RunLayer(int layer, const DeviceTimer& timer) {
  AttendLayer(layer, timer);
  timer.Run(&EncoderTimes::linears, [&] { Finish(layer); });
}

void DeviceCstPart::AddResults(DeviceResults& results) const {
  results.Add(buffers_.kept, static_cast<size_t>(wanted_ * width_) * sizeof(float));
}

}  // namespace longview::models
