#include "models/ops/deliver.h"

#include <algorithm>
#include <cmath>

#include "models/ops/host_backend.h"

namespace longview::models {
namespace {

// log of the sum of exp over two runs, the second may be empty.
double LogSumExp(std::span<const float> a, std::span<const float> b) {
  float top = *std::max_element(a.begin(), a.end());
  for (const float value : b) top = std::max(top, value);
  double sum = 0;
  for (const float value : a) sum += std::exp(double{value} - top);
  for (const float value : b) sum += std::exp(double{value} - top);
  return top + std::log(sum);
}

}  // namespace

void AdaptiveLogProbabilities(std::span<const float> scores, std::span<const int32_t> cutoffs,
                              std::span<float> out) {
  const auto first = static_cast<size_t>(cutoffs.front());
  const std::span<const float> tails = scores.last(cutoffs.size());
  const double head = LogSumExp(scores.first(first), tails);
  for (size_t w = 0; w < first; ++w) out[w] = static_cast<float>(scores[w] - head);
  for (size_t c = 0; c < cutoffs.size(); ++c) {
    const auto begin = static_cast<size_t>(cutoffs[c]);
    const size_t end = c + 1 < cutoffs.size() ? static_cast<size_t>(cutoffs[c + 1]) : out.size();
    const double shift = tails[c] - head - LogSumExp(scores.subspan(begin, end - begin), {});
    for (size_t w = begin; w < end; ++w) out[w] = static_cast<float>(scores[w] + shift);
  }
}

Rows TakeDelivered(Backend& backend, int64_t count, int64_t width) {
  return backend.on_device() ? backend.Take(count, width, RowType::kFloat) : Rows();
}

namespace ops {

void Deliver::OnHost(HostBackend& host) const {
  Carver scratch = host.Scratch();
  std::byte* const products = host.TakeProducts(weight, in, scratch);
  if (!host.Runs(scratch)) return;
  const float* bias = weight.host->bias.data();
  host.Multiply(weight, in, products, [&](int64_t row, std::byte* y) {
    host.kernels().bias_widen(y, bias, weight.out, to[static_cast<size_t>(row)]);
  });
}

void DeliverAdaptive::OnHost(HostBackend& host) const {
  const int threads = host.threads();  // On a thread of the pool it would be 1.
  Carver scratch = host.Scratch();
  float* const all_scores = scratch.Take<float>(weight.out * threads);
  if (!host.Runs(scratch)) return;
  const DenseLayer& layer = *weight.host;
  const std::span<const int32_t> tails(cutoffs.data, static_cast<size_t>(cutoffs.count));
  const int64_t words = weight.out - cutoffs.count,
                row_bytes = weight.out * ElementBytes(host.compute());
  ForEachPanel(layer.linear, in.data, in.count, [&](int64_t row, int64_t used, void* y) {
    kernels::RunOnThreads(host.pool(), [&](int thread) {
      const std::span<float> scores(all_scores + thread * weight.out,
                                    static_cast<size_t>(weight.out));
      for (int64_t i = used * thread / threads; i < used * (thread + 1) / threads; ++i) {
        host.kernels().bias_widen(static_cast<std::byte*>(y) + i * row_bytes, layer.bias.data(),
                                  weight.out, scores.data());
        AdaptiveLogProbabilities(scores, tails,
                                 {to[static_cast<size_t>(row + i)], static_cast<size_t>(words)});
      }
    });
  });
}

}  // namespace ops
}  // namespace longview::models
