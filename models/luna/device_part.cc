#include "models/luna/device_part.h"

#include <algorithm>

#include "kernels/cuda/span/launch_shape.h"
#include "models/device/device_tail.h"
#include "models/luna/heads.h"

namespace longview::models {

DeviceLunaPart::DeviceLunaPart(const Context& context, Sequences sequences)
    : DeviceEncoderPart(sequences),
      context_(context),
      config_(*context.config),
      width_(config_.width),
      rows_(*context.device, context.compute, config_.width),
      plan_(PlanLuna(config_, batch(), kernels::cuda::kDeviceTileRows)) {
  const int64_t extra = ReadsProjected(config_) ? projected_rows() : 0;
  Count({&plan_.pack, &plan_.unpack, &plan_.unpack_wanted}, plan_.wanted() + extra, width_);
}

void DeviceLunaPart::Stage(StagedLists& lists) {
  tokens_ = StageTokens(lists);
  pack_ = StagePlan(plan_.pack, lists);
  unpack_ = StagePlan(plan_.unpack, lists);
  unpack_wanted_ = StagePlan(plan_.unpack_wanted, lists);
  wanted_rows_ = lists.Add(plan_.wanted_rows);
  std::vector<int32_t> projected;
  for (int s = 0; s < batch().size(); ++s) {
    const int32_t count = plan_.projected_offsets[s + 1] - plan_.projected_offsets[s];
    for (int32_t row = 0; row < count; ++row) projected.push_back(row);
  }
  projected_rows_ = lists.Add(projected);
}

void DeviceLunaPart::Carve(Carver& carver) {
  const int64_t padded = batch().rows() + kDevicePanelTail;
  const int64_t kept = plan_.wanted() + kDevicePanelTail;
  const int64_t projected = projected_rows() + kDevicePanelTail;
  const auto take = [&](int64_t count, int64_t columns) {
    return carver.TakeBytes(static_cast<size_t>(count * columns * ElementBytes(context_.compute)));
  };
  const int pack_dim = config_.width / config_.pack_heads, dim = config_.width / config_.heads;
  const size_t partials =
      std::max({DevicePartialBytes(pack_, pack_dim), DevicePartialBytes(unpack_, dim),
                DevicePartialBytes(unpack_wanted_, dim)});
  Buffers& b = buffers_;
  b.x = carver.Take<float>(padded * width_);
  b.kept = carver.Take<float>(kept * width_);
  b.p = carver.Take<float>(projected * width_);
  if (has_input()) {
    b.input = b.kept_input = take(padded, width_);
    b.p_input = take(projected, width_);
  } else {
    b.input = reinterpret_cast<std::byte*>(b.x);
    b.kept_input = reinterpret_cast<std::byte*>(b.kept);
    b.p_input = reinterpret_cast<std::byte*>(b.p);
  }
  b.projections = take(padded, parts() * width_);
  b.queries = take(plan_.wanted(), width_);
  b.z = take(padded, width_);
  b.wide = take(padded, config_.intermediate);
  b.pack_queries = take(projected, width_);
  b.packed = take(projected, width_);
  b.unpack_keys = take(projected, (parts() - 1) * width_);
  b.partials = carver.TakeBytes(partials);
}

void DeviceLunaPart::Embed() {
  const DeviceLunaWeights& weights = *context_.weights;
  const Device& device = *context_.device;
  const bool has_positions = config_.positions != LunaPositions::kNone;
  const kernels::cuda::EmbedSums sums = {weights.words,
                                         has_positions ? weights.positions : nullptr,
                                         nullptr,
                                         tokens_.ids,
                                         tokens_.positions,
                                         nullptr,
                                         config_.embed_scale,
                                         buffers_.x,
                                         batch().rows(),
                                         config_.width};
  device.Check(device.api().encoder.embed(device.stream(), sums), "embeddings");
  rows_.GatherFloats(weights.projected, projected_rows_, projected_rows(), buffers_.p);
  if (config_.embedding_norm) {
    rows_.Norm(buffers_.x, weights.embedding_norm, batch().rows(), nullptr);
  }
  EnterLayers();
}

// What the first layer reads; later the layer before leaves it there.
void DeviceLunaPart::EnterLayers() const {
  const DeviceLunaLayer& first = context_.weights->layer(0);
  const Buffers& b = buffers_;
  if (pre_norm()) {
    rows_.Prenorm(b.x, first.attention_norm, batch().rows(), b.input);
    rows_.Prenorm(b.p, first.projected_norm, projected_rows(), b.p_input);
  } else if (has_input()) {
    rows_.Narrow(b.x, batch().rows(), b.input);
    rows_.Narrow(b.p, projected_rows(), b.p_input);
  }
}

// Keys in rows of `row` elements, values behind them, or the same where tied.
kernels::cuda::SpanSource DeviceLunaPart::Keys(std::byte* keys, int64_t row, int heads) const {
  std::byte* const values = config_.tied_kv ? keys : keys + rows_.row_bytes();
  return DeviceHeadsSource(keys, values, row, config_.width / heads);
}

// The unpack's query of every token beside the pack's key and value, and the pack's queries.
void DeviceLunaPart::Project(int layer) const {
  const Device& device = *context_.device;
  const DeviceLunaLayer& weights = context_.weights->layer(layer);
  const Buffers& b = buffers_;
  ApplyLinear(device, weights.project, b.input, batch().rows(), b.projections);
  ApplyLinear(device, weights.pack_query, b.p_input, projected_rows(), b.pack_queries);
}

// packed = Y_P
void DeviceLunaPart::Pack() const {
  const Buffers& b = buffers_;
  const int heads = config_.pack_heads;
  kernels::cuda::SpanCall call = DeviceHeadsCall(context_.compute, heads, config_.width / heads);
  call.q = b.pack_queries;
  call.out = b.packed;
  call.sources_used = 1;
  call.sources[0] = Keys(b.projections + rows_.row_bytes(), parts() * width_, heads);
  Attend(*context_.device, pack_, call, b.partials);
}

void DeviceLunaPart::Unpack(int layer) const {
  const Buffers& b = buffers_;
  const int heads = config_.heads;
  kernels::cuda::SpanCall call = DeviceHeadsCall(context_.compute, heads, config_.width / heads);
  call.q = b.projections;
  call.q_row_stride = parts() * width_;
  if (last(layer)) {
    rows_.Gather(b.projections, parts() * width_, wanted_rows_, plan_.wanted(), b.queries);
    call.q = b.queries;
    call.q_row_stride = width_;
  }
  call.out = b.z;
  call.sources_used = 1;
  call.sources[0] = Keys(b.unpack_keys, (parts() - 1) * width_, heads);
  Attend(*context_.device, last(layer) ? unpack_wanted_ : unpack_, call, b.partials);
}

// p takes the packed context as it is: no output projection, no feed-forward.
void DeviceLunaPart::UpdateProjected(int layer) const {
  const DeviceLunaWeights& weights = *context_.weights;
  const Buffers& b = buffers_;
  const int64_t count = projected_rows();
  if (pre_norm() && !last(layer)) {
    return rows_.AddPrenorm(b.p, b.packed, nullptr, weights.layer(layer + 1).projected_norm, count,
                            b.p_input);
  }
  const DeviceNorm& norm =
      pre_norm() ? weights.final_projected_norm : weights.layer(layer).projected_norm;
  const bool reads = has_input() && !last(layer);
  rows_.Add(b.p, b.packed, nullptr, &norm, count, reads ? b.p_input : nullptr);
}

void DeviceLunaPart::Finish(int layer) const {
  const DeviceLunaWeights& weights = *context_.weights;
  const DeviceLunaLayer& own = weights.layer(layer);
  DeviceTail tail;
  tail.out = &own.out;
  tail.after_attention = pre_norm() ? &own.output_norm : &own.attention_norm;
  tail.expand = &own.expand;
  tail.contract = &own.contract;
  tail.after_layer = &own.output_norm;
  if (pre_norm()) {
    tail.after_layer = last(layer) ? nullptr : &weights.layer(layer + 1).attention_norm;
    tail.last = last(layer) ? &weights.final_norm : nullptr;
  }
  tail.activation = config_.activation;
  tail.norms = config_.norms;
  const Buffers& b = buffers_;
  DeviceTailRows rows = {b.x, b.input, b.z, b.wide, b.projections, batch().rows()};
  if (last(layer)) {
    rows_.GatherFloats(b.x, wanted_rows_, plan_.wanted(), b.kept);
    rows.x = b.kept;
    rows.input = b.kept_input;
    rows.rows = plan_.wanted();
  }
  RunDeviceTail(*context_.device, tail, rows);
}

void DeviceLunaPart::RunLayer(int layer, const DeviceTimer& timer) {
  const Buffers& b = buffers_;
  timer.Run(&EncoderTimes::linears, [&] { Project(layer); });
  timer.Run(&EncoderTimes::attention, [&] { Pack(); });
  timer.Run(&EncoderTimes::linears, [&] {
    ApplyLinear(*context_.device, context_.weights->layer(layer).unpack, b.packed, projected_rows(),
                b.unpack_keys);
  });
  timer.Run(&EncoderTimes::attention, [&] { Unpack(layer); });
  timer.Run(&EncoderTimes::linears, [&] {
    UpdateProjected(layer);
    Finish(layer);
  });
}

void DeviceLunaPart::AddResults(DeviceResults& results) const {
  const auto add = [&](const float* rows, int64_t count) {
    results.Add(rows, static_cast<size_t>(count * width_) * sizeof(float));
  };
  add(buffers_.kept, plan_.wanted());
  if (ReadsProjected(config_)) add(buffers_.p, projected_rows());
}

}  // namespace longview::models
