#include "models/cst/lm_logits.h"

#include <algorithm>
#include <cmath>

#include "models/parallel.h"

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

void AdaptiveLogProbabilities(std::span<const float> scores, std::span<const int> cutoffs,
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

void WriteCstLogits(const CstContext& context, std::span<float* const> to,
                    const CstBuffers& buffers) {
  const CstConfig& config = *context.config;
  const CstWeights& weights = *context.weights;
  const RowKernels& kernels = ChooseRowKernels(context.compute);
  const DenseLayer& head = *weights.head_out;
  const int64_t width = config.width, element = ElementBytes(context.compute);
  const auto rows = static_cast<int64_t>(to.size());
  ParallelRanges(*context.pool, rows, 4, [&](long begin, long end) {
    for (long row = begin; row < end; ++row) {
      const float* x = buffers.x + row * width;
      std::byte* input = buffers.z + row * width * element;
      config.final_norm ? kernels.norm(x, weights.norm.host.view(), width, input)
                        : kernels.narrow(x, width, input);
    }
  });
  ForEachPanel(head.linear, buffers.z, rows, [&](int64_t row, int64_t used, void* y) {
    ParallelRanges(*context.pool, used, 4, [&](long begin, long end) {
      std::vector<float> scores(config.cutoffs.empty() ? 0 : static_cast<size_t>(head.out()));
      for (long i = begin; i < end; ++i) {
        float* out = to[static_cast<size_t>(row + i)];
        const std::byte* from = static_cast<std::byte*>(y) + i * head.out() * element;
        kernels.bias_widen(from, head.bias.data(), head.out(),
                           scores.empty() ? out : scores.data());
        if (scores.empty()) continue;
        AdaptiveLogProbabilities(scores, config.cutoffs, {out, static_cast<size_t>(config.vocab)});
      }
    });
  });
}

}  // namespace longview::models
