// Operations of decoders on the host: rows over a KV cache, and the few rows of a decode step.
#include <algorithm>
#include <cstring>

#include "models/dense/row_linear.h"
#include "models/layers/span_rows.h"
#include "models/ops/adaptive_softmax.h"
#include "models/ops/host_ops.h"

namespace longview::models {
namespace {

// Scratch of a feed-forward block of few rows.
struct FewRows {
  std::byte* products = nullptr;  // Results of any of its linears.
  std::byte* expanded = nullptr;  // T [rows, expanded]
};

FewRows CarveFewRows(const BlockWeights& weights, int64_t rows, Compute compute, Carver& carver) {
  size_t products = 0;
  for (const Weight* weight : {weights.out, weights.expand, weights.contract}) {
    if (weight == nullptr) continue;
    products = std::max(products, RowLinear::ScratchBytes(weight->out, weight->in, compute));
  }
  const int64_t expanded = rows * weights.expand->out * ElementBytes(compute);
  FewRows few;
  few.products = carver.TakeBytes(products);
  few.expanded = carver.TakeBytes(static_cast<size_t>(expanded));
  return few;
}

}  // namespace

void HostOps::FeedFewRows(const BlockWeights& weights, const BlockRows& rows) const {
  Carver carver(scratch_);
  const FewRows few = CarveFewRows(weights, rows.x.count, compute(), carver);
  const auto each = [&](const Weight& weight, const std::byte* input, auto&& use) {
    ForEachFewRow(*weight.host, input, rows.x.count, few.products, *context_.pool, times_, use);
  };
  const int64_t width = rows.x.width;
  const auto add_row =
      weights.norms == NormPlace::kPost ? kernels_.residual_norm : kernels_.residual_prenorm;
  const auto add = [&](const Weight& weight, const NormWeight* norm) {
    const float* bias = weight.host->bias.data();
    const bool copies = weights.norms == NormPlace::kPost;
    return [&rows, this, norm, bias, width, add_row, copies](int64_t row, std::byte* y) {
      float* x = rows.x.floats() + row * width;
      if (norm == nullptr) {
        kernels_.residual_add(x, y, bias, width, copies ? rows.input.Row(row) : nullptr);
      } else {
        add_row(x, y, bias, norm->host.view(), width, rows.input.Row(row));
      }
    };
  };
  each(*weights.out, rows.z.data, add(*weights.out, weights.after_attention));
  const int64_t inner = weights.expand->out, inner_bytes = inner * ElementBytes(compute());
  const float* inner_bias = weights.expand->host->bias.data();
  each(*weights.expand, rows.input.data, [&](int64_t row, std::byte* y) {
    kernels_.bias_act(y, inner_bias, inner, weights.activation);
    std::memcpy(few.expanded + row * inner_bytes, y, static_cast<size_t>(inner_bytes));
  });
  each(*weights.contract, few.expanded, add(*weights.contract, weights.after_layer));
}

void HostOps::Store(const StripRef& strip, const Rows& keys, const Rows& values,
                    const PlacesRef& places) {
  kernels::ProjectionCache::Rows rows;
  rows.k = keys.data;
  rows.v = values.data;
  rows.dtype = SpanType(compute());
  rows.k_row_stride = keys.stride;
  rows.v_row_stride = values.stride;
  rows.k_head_stride = keys.width / strip.heads;
  rows.v_head_stride = values.width / strip.heads;
  strip.cache->Write(strip.strip, strip.layer, places.host, rows, PoolFor(keys.count));
}

void HostOps::ProjectAdded(const Weight& weight, const Rows& in, const NormWeight& norm,
                           NormPlace place, const Rows& x, const Rows& input) {
  const float* bias = weight.host->bias.data();
  const auto add = place == NormPlace::kPre ? kernels_.residual_prenorm : kernels_.residual_norm;
  Multiply(weight, in, [&](int64_t row, std::byte* y) {
    add(x.floats() + row * x.width, y, bias, norm.host.view(), x.width, input.Row(row));
  });
}

void HostOps::ProjectActivated(const Weight& weight, Activation activation, const NormWeight& norm,
                               const Rows& in, const Rows& out) {
  const float* bias = weight.host->bias.data();
  const float* zeros = Zeros(weight.out);
  Multiply(weight, in, [&](int64_t row, std::byte* y) {
    kernels_.bias_act(y, bias, weight.out, activation);
    kernels_.bias_norm(y, zeros, norm.host.view(), weight.out, out.Row(row));
  });
}

void HostOps::Deliver(const Weight& weight, const Rows& in, const Rows&,
                      std::span<float* const> to) {
  const float* bias = weight.host->bias.data();
  Multiply(weight, in, [&](int64_t row, std::byte* y) {
    kernels_.bias_widen(y, bias, weight.out, to[static_cast<size_t>(row)]);
  });
}

void HostOps::DeliverAdaptive(const Weight& weight, IndexRef cutoffs, const Rows& in, const Rows&,
                              std::span<float* const> to) {
  const DenseLayer& layer = *weight.host;
  const std::span<const int32_t> tails(cutoffs.data, static_cast<size_t>(cutoffs.count));
  const int64_t words = weight.out - cutoffs.count,
                row_bytes = weight.out * ElementBytes(compute());
  const int threads = context_.pool->threads();  // On a thread of the pool it would be 1.
  ForEachPanel(layer.linear, in.data, in.count, [&](int64_t row, int64_t used, void* y) {
    kernels::RunOnThreads(*context_.pool, [&](int thread) {
      const std::span<float> scores(reinterpret_cast<float*>(scratch_) + thread * weight.out,
                                    static_cast<size_t>(weight.out));
      for (int64_t i = used * thread / threads; i < used * (thread + 1) / threads; ++i) {
        kernels_.bias_widen(static_cast<std::byte*>(y) + i * row_bytes, layer.bias.data(),
                            weight.out, scores.data());
        AdaptiveLogProbabilities(scores, tails,
                                 {to[static_cast<size_t>(row + i)], static_cast<size_t>(words)});
      }
    });
  });
}

size_t HostCount::AdaptiveScratch(const Weight& weight, const Rows&) const {
  return static_cast<size_t>(weight.out * context_.pool->threads()) * sizeof(float);
}

size_t HostCount::MadeScratch(const Weight& weight, const Rows& in) const {
  return in.few ? RowLinear::ScratchBytes(weight.out, weight.in, compute()) : 0;
}

size_t HostCount::FeedForwardScratch(const BlockWeights& weights, const BlockRows& rows) const {
  if (!rows.z.few) return 0;
  Carver carver(nullptr);
  CarveFewRows(weights, rows.x.count, compute(), carver);
  return carver.used();
}

}  // namespace longview::models
