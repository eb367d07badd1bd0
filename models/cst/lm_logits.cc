#include "models/cst/lm_logits.h"

#include "models/ops/adaptive_softmax.h"
#include "models/parallel.h"

namespace longview::models {

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
