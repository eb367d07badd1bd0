#include "models/transformer_ls_text/device_part.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/pool/pool_pieces.h"
#include "kernels/cuda/span/launch_shape.h"
#include "models/device/device_tail.h"
#include "models/layers/span_rows.h"

namespace longview::models {
namespace {

kernels::cuda::PoolPiecePlan PiecesOf(const RaggedBatch& batch) {
  std::vector<kernels::cuda::PoolSegment> segments;
  for (int s = 0; s < batch.size(); ++s) {
    segments.push_back({batch.offsets()[s], batch.offsets()[s + 1]});
  }
  return kernels::cuda::CutPieces(segments);
}

}  // namespace

DeviceLsTextPart::DeviceLsTextPart(const Context& context, Sequences sequences)
    : DeviceEncoderPart(sequences),
      context_(context),
      config_(*context.config),
      width_(config_.width),
      rows_(*context.device, context.compute, config_.width) {
  for (int layer = 0; layer < config_.layers; ++layer) {
    const bool has_class = config_.HasClass(layer);
    if (plans_.contains(has_class)) continue;
    plans_[has_class].host =
        PlanLsText(config_, batch(), has_class, kernels::cuda::kDeviceTileRows);
  }
  kept_ = static_cast<int64_t>(WantedRows().size()) + class_rows();
  pieces_ = static_cast<int32_t>(PiecesOf(batch()).pieces.size());
  const LsTextPlan& first = plans_.begin()->second.host;
  const LsTextPlan& last = plans_.rbegin()->second.host;
  Count({&first.tokens, &first.class_rows, &last.tokens, &last.class_rows}, kept_, width_);
}

void DeviceLsTextPart::Stage(StagedLists& lists) {
  // The class token's row is a token's; a learned class vector has no id.
  const bool token = config_.cls == LsClass::kFirstToken;
  tokens_ = StageTokens(lists, token ? class_rows() : 0, config_.vocab - 1, 0);
  std::vector<int32_t> kept = WantedRows();
  for (int64_t s = 0; s < class_rows(); ++s) kept.push_back(static_cast<int32_t>(tokens() + s));
  kept_rows_ = lists.Add(kept);
  const kernels::cuda::PoolPiecePlan pieces = PiecesOf(batch());
  piece_list_ = lists.Add(pieces.pieces);
  piece0_ = lists.Add(pieces.piece0);
  for (auto& [has_class, plan] : plans_) {
    plan.tokens = StagePlan(plan.host.tokens, lists);
    plan.class_rows = StagePlan(plan.host.class_rows, lists);
  }
}

void DeviceLsTextPart::Carve(Carver& carver) {
  const int64_t all = tokens() + class_rows(), padded = all + kDevicePanelTail;
  const auto take = [&](int64_t count, int64_t columns) {
    return carver.TakeBytes(static_cast<size_t>(count * columns * ElementBytes(context_.compute)));
  };
  int64_t landmarks = 0;
  size_t partials = 0;
  for (const auto& [has_class, plan] : plans_) {
    landmarks = std::max(landmarks, plan.host.projected_rows());
    for (const DevicePlan* attention : {&plan.tokens, &plan.class_rows}) {
      partials = std::max(partials, DevicePartialBytes(*attention, config_.head_dim()));
    }
  }
  const int64_t states = int64_t{pieces_} * config_.columns();
  const int64_t pooled = batch().size() * config_.columns() * config_.head_dim();
  Buffers& b = buffers_;
  b.x = carver.Take<float>(all * width_);
  b.kept = carver.Take<float>(kept_ * width_);
  b.input = take(padded, width_);
  b.projected = take(padded, columns());
  b.keys = take(padded, width_);
  b.values = take(all, width_);
  b.z = take(padded, width_);
  b.wide = take(padded, config_.intermediate);
  b.scores = carver.Take<float>(all * config_.columns());
  b.sums.m = carver.Take<float>(states);
  b.sums.s = carver.Take<float>(states);
  b.sums.sums = carver.Take<float>(states * config_.head_dim());
  b.pooled_keys = carver.Take<float>(pooled);
  b.pooled_values = carver.Take<float>(pooled);
  b.landmarks = take(landmarks, 2 * width_);
  b.partials = carver.TakeBytes(partials);
}

std::byte* DeviceLsTextPart::At(std::byte* rows, int64_t elements) const {
  return rows + elements * ElementBytes(context_.compute);
}

void DeviceLsTextPart::Embed() {
  const DeviceLsTextWeights& weights = *context_.weights;
  const Device& device = *context_.device;
  const bool token = config_.cls == LsClass::kFirstToken;
  const int64_t count = tokens() + (token ? class_rows() : 0);
  const kernels::cuda::EmbedSums sums = {
      weights.words, weights.positions, nullptr, tokens_.ids,  tokens_.positions, nullptr,
      1.0f,          buffers_.x,        count,   config_.width};
  device.Check(device.api().encoder.embed(device.stream(), sums), "embeddings");
  rows_.Prenorm(buffers_.x, weights.layer(0).attention_norm, count, buffers_.input);
}

// A learned class vector enters attention as it is; the class token is normalised like any token.
void DeviceLsTextPart::EnterClassRows(int layer) {
  if (!config_.HasClass(layer) || config_.cls == LsClass::kFirstToken) return;
  float* const x = buffers_.x + tokens() * width_;
  if (layer == 0 || !config_.HasClass(layer - 1)) {
    const Device& device = *context_.device;
    const int64_t bytes = width_ * int64_t{sizeof(float)};
    // One row for all sequences.
    const kernels::cuda::CopyRows copies = {
        context_.weights->class_vector, x, nullptr, nullptr, class_rows(),
        static_cast<int32_t>(bytes),    0, bytes};
    device.Check(device.api().rows.copy(device.stream(), copies), "class vectors");
  }
  rows_.Narrow(x, class_rows(), At(buffers_.input, tokens() * width_));
}

// Class rows' own keys and values stay where they are, unnormalised; the normed ones and their
// scores are nobody's.
void DeviceLsTextPart::Project(int layer) const {
  const Device& device = *context_.device;
  const DeviceLsTextLayer& weights = context_.weights->layer(layer);
  const int64_t count = PlanOf(layer).host.rows();
  MultiplyRows(device, weights.project, buffers_.input, count, buffers_.projected);
  const kernels::cuda::ProjectedRows rows = {buffers_.projected,
                                             weights.project.bias,
                                             weights.token_norm.view(),
                                             buffers_.keys,
                                             buffers_.values,
                                             buffers_.scores,
                                             count,
                                             config_.width,
                                             config_.columns(),
                                             SpanType(context_.compute)};
  device.Check(device.api().token.project(device.stream(), rows), "keys and values");
}

void DeviceLsTextPart::Pool(const void* values, float* out) const {
  const Device& device = *context_.device;
  const int32_t columns = config_.columns(), dim = config_.head_dim();
  const kernels::cuda::PoolPieces pieces = {
      {buffers_.scores, columns, columns, config_.rank, tokens_.roles},
      {values, width_, dim, dim, SpanType(context_.compute)},
      piece_list_,
      pieces_,
      buffers_.sums};
  device.Check(device.api().pool.pieces(device.stream(), pieces), "pooling");
  const kernels::cuda::PoolMerge merge = {buffers_.sums, piece0_, batch().size(),
                                          columns,       dim,     out};
  device.Check(device.api().pool.merge(device.stream(), merge), "merging pools");
}

void DeviceLsTextPart::PlaceLandmarks(int layer) const {
  const Device& device = *context_.device;
  const LayerPlan& plan = PlanOf(layer);
  if (config_.rank > 0) {
    Pool(buffers_.keys, buffers_.pooled_keys);
    Pool(buffers_.values, buffers_.pooled_values);
  }
  std::byte* const own = At(buffers_.projected, tokens() * columns());
  const bool has_class = plan.host.has_class;
  const kernels::cuda::LandmarkRows landmarks = {
      buffers_.pooled_keys,
      buffers_.pooled_values,
      has_class ? At(own, width_) : nullptr,
      has_class ? At(own, 2 * width_) : nullptr,
      columns(),
      context_.weights->layer(layer).landmark_norm.view(),
      buffers_.landmarks,
      batch().size(),
      config_.rank,
      config_.heads,
      config_.head_dim(),
      SpanType(context_.compute)};
  device.Check(device.api().encoder.landmarks(device.stream(), landmarks), "landmarks");
}

void DeviceLsTextPart::Attend(int layer) const {
  const LayerPlan& plan = PlanOf(layer);
  const int dim = config_.head_dim();
  kernels::cuda::SpanCall call = DeviceHeadsCall(context_.compute, config_.heads, dim);
  call.q = buffers_.projected;
  call.q_row_stride = columns();
  call.out = buffers_.z;
  call.sources_used = 2;
  call.sources[0] =
      DeviceHeadsSource(buffers_.landmarks, At(buffers_.landmarks, width_), 2 * width_, dim);
  call.sources[1] = DeviceHeadsSource(buffers_.keys, buffers_.values, width_, dim);
  models::Attend(*context_.device, plan.tokens, call, buffers_.partials);
  call.sources[0] = DeviceHeadsSource(At(buffers_.projected, width_),
                                      At(buffers_.projected, 2 * width_), columns(), dim);
  call.sources[1] = DeviceHeadsSource(buffers_.z, buffers_.z, width_, dim);
  models::Attend(*context_.device, plan.class_rows, call, buffers_.partials);
}

void DeviceLsTextPart::Finish(int layer) const {
  const DeviceLsTextWeights& weights = *context_.weights;
  const DeviceLsTextLayer& own = weights.layer(layer);
  const bool last = layer + 1 == config_.layers;
  DeviceTail tail;
  tail.out = &own.out;
  tail.after_attention = &own.mlp_norm;
  tail.expand = &own.expand;
  tail.contract = &own.contract;
  tail.after_layer = last ? nullptr : &weights.layer(layer + 1).attention_norm;
  tail.last = last ? &weights.norm : nullptr;
  tail.norms = NormPlace::kPre;
  DeviceTailRows rows = {buffers_.x,    buffers_.input,     buffers_.z,
                         buffers_.wide, buffers_.projected, PlanOf(layer).host.rows()};
  if (last) {
    rows_.GatherFloats(buffers_.x, kept_rows_, kept_, buffers_.kept);
    rows_.Gather(buffers_.z, width_, kept_rows_, kept_, buffers_.keys);
    rows.x = buffers_.kept;
    rows.z = buffers_.keys;
    rows.rows = kept_;
  }
  RunDeviceTail(*context_.device, tail, rows);
}

void DeviceLsTextPart::RunLayer(int layer, const DeviceTimer& timer) {
  timer.Run(&EncoderTimes::linears, [&] {
    EnterClassRows(layer);
    Project(layer);
  });
  timer.Run(&EncoderTimes::attention, [&] {
    PlaceLandmarks(layer);
    Attend(layer);
  });
  timer.Run(&EncoderTimes::linears, [&] { Finish(layer); });
}

void DeviceLsTextPart::AddResults(DeviceResults& results) const {
  results.Add(buffers_.kept, static_cast<size_t>(kept_ * width_) * sizeof(float));
}

}  // namespace longview::models
