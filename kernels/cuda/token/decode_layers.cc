#include "kernels/cuda/token/decode_layers.h"

#include <cmath>

#include "kernels/cuda/span/launch_shape.h"

namespace longview::kernels::cuda {

DecodeRows CarveDecodeRows(const DecodeShape& shape, int32_t rows, ArrayCarver& take) {
  const auto count = static_cast<size_t>(rows);
  const auto floats = [&](int32_t columns) {
    return take.Array<float>(count * static_cast<size_t>(columns));
  };
  const auto typed = [&](int32_t columns) {
    return take.Array<std::byte>(count * static_cast<size_t>(columns) * SizeOf(shape.dtype));
  };
  DecodeRows b;
  b.x = floats(shape.width);
  b.input = typed(shape.width);
  b.y = typed(shape.projected());
  b.keys = typed(shape.width);
  b.values = typed(shape.width);
  b.scores = floats(shape.columns());
  b.z = typed(shape.width);
  b.wide = typed(shape.intermediate);
  b.rounded = typed(shape.vocab);
  b.logits = floats(shape.vocab);
  return b;
}

void DecodeLayers::Multiply(const std::byte* x, int32_t rows, const DecodeLinear& linear,
                            int32_t in, int32_t out, std::byte* y) {
  Do(api_.token.product, {x, linear.weight, y, rows, in, out, shape_.dtype});
}

void DecodeLayers::Follow(const std::byte* y, const float* bias, const RowNorm& norm) {
  Do(api_.token.stream, {b_.x, y, bias, norm, b_.input, rows_, shape_.width, shape_.dtype});
}

void DecodeLayers::Embed(const int32_t* ids) {
  const auto bytes = static_cast<int32_t>(shape_.width * sizeof(float));
  Do(api_.rows.copy, {weights_.words, b_.x, ids, nullptr, rows_, bytes, bytes, bytes});
  Follow(nullptr, nullptr, shape_.pre_norm ? weights_.layers[0].norm1 : RowNorm{});
}

void DecodeLayers::Project(int layer) {
  const DecodeLayer& weights = weights_.layers[layer];
  Multiply(b_.input, rows_, weights.project, shape_.width, shape_.projected(), b_.y);
  Do(api_.token.project, {b_.y, weights.project.bias, weights.window_norm, b_.keys, b_.values,
                          b_.scores, rows_, shape_.width, shape_.columns(), shape_.dtype});
}

void DecodeLayers::Store(const CacheRows& cache, const CacheRowPlace* places) {
  Do(api_.token.store, {b_.keys, b_.values, shape_.width, places, cache, rows_, shape_.dtype});
}

SpanCall DecodeLayers::Queries() const {
  SpanCall call = {};
  call.q = b_.y;
  call.out = b_.z;
  call.q_row_stride = shape_.projected();
  call.out_row_stride = shape_.width;
  call.q_head_stride = call.out_head_stride = call.Dk = call.Dv = shape_.dim();
  call.element = shape_.dtype;
  call.H = shape_.heads();
  call.kv_group = 1;
  call.scale = shape_.scale();
  return call;
}

void DecodeLayers::Attend(SpanCall call, const PlanCapacity& capacity, const std::byte* image,
                          std::byte* partials) {
  PrepareCall(&call, partials, capacity.partial_slots);
  const SpanLaunch launch = ShapeLaunch(capacity, call, SpanKernel::kRows);
  const PlanView plan = ViewImage(capacity, image);
  if (status_ == 0) status_ = api_.span.forward(stream_, &plan, &call, &launch);
  if (status_ == 0) status_ = api_.span.merge(stream_, &plan, &call, &launch);
}

// pre_norm keeps the stream normalised: what follows the second linear is the next layer's norm1.
void DecodeLayers::Finish(int layer) {
  const DecodeLayer& weights = weights_.layers[layer];
  const bool last = layer + 1 == std::ssize(weights_.layers);
  Multiply(b_.z, rows_, weights.out, shape_.width, shape_.width, b_.y);
  Follow(b_.y, weights.out.bias, shape_.pre_norm ? weights.norm2 : weights.norm1);
  Multiply(b_.input, rows_, weights.expand, shape_.width, shape_.intermediate, b_.wide);
  Do(api_.rows.bias,
     {b_.wide, weights.expand.bias, rows_, shape_.intermediate, shape_.activation, shape_.dtype});
  Multiply(b_.wide, rows_, weights.contract, shape_.intermediate, shape_.width, b_.y);
  Follow(b_.y, weights.contract.bias,
         !shape_.pre_norm ? weights.norm2
         : last           ? RowNorm{}
                          : weights_.layers[layer + 1].norm1);
}

void DecodeLayers::Logits() {
  Multiply(b_.input, rows_, weights_.logits, shape_.width, shape_.vocab, b_.rounded);
  Do(api_.rows.widen,
     {b_.rounded, weights_.logits.bias, b_.logits, rows_, shape_.vocab, shape_.dtype});
}

}  // namespace longview::kernels::cuda
