#include "models/longformer/cost.h"

#include <algorithm>

#include "kernels/span/band_planner.h"
#include "models/longformer/layer_plan.h"

namespace longview::models {
namespace {

// Pairs of a query and a key of its window, mean over the heads.
double AllWindowPairs(const LongformerConfig& config, int layer, double tokens) {
  double sum = 0;
  for (int head = 0; head < config.heads; ++head) {
    const std::vector<int>& dilation = config.dilation[layer];
    const double step = dilation.empty() ? 1 : dilation[head];
    // Exact for rows away from the ends; the two ends lose a triangle each.
    const double window = std::min<double>(config.window[layer], (tokens - 1) / step);
    sum += tokens * (2 * window + 1) - window * (window + 1) * step;
  }
  return sum / config.heads;
}

}  // namespace

EncoderWork WorkOf(const LongformerConfig& config, const EncoderSequence& sequence) {
  const double n = sequence.tokens(), h = config.width, i = config.intermediate;
  const double g = static_cast<double>(
      std::count(sequence.roles.begin(), sequence.roles.end(), kernels::kGlobalToken));
  const bool folds = FoldsGlobals(config, static_cast<int>(g));
  EncoderWork work;
  work.rows = n * h;
  for (int layer = 0; layer < config.layers; ++layer) {
    const bool last = layer + 1 == config.layers;
    const double outputs = last ? static_cast<double>(sequence.wanted.size()) : n;
    double wanted_globals = g, locals = n;
    if (last && outputs < n) {
      wanted_globals = 0;
      for (const int32_t t : sequence.wanted) {
        wanted_globals += sequence.roles[t] == kernels::kGlobalToken ? 1 : 0;
      }
      const double reach = sequence.wanted.back() + 1.0 + config.window[layer];
      locals = wanted_globals == outputs ? 0 : std::min(n, reach);
    }
    const double local_share = n > 0 ? (outputs - wanted_globals) / n : 0;
    work.linear += 3 * locals * h * h + outputs * h * h + 2 * outputs * h * i;
    work.attention += 2 * h * (AllWindowPairs(config, layer, n) + n * g) * local_share;
    if (wanted_globals > 0) {
      work.linear += (folds ? 0 : 2 * n * h * h) + wanted_globals * h * h;
      work.attention +=
          folds ? 2 * wanted_globals * n * h * config.heads : 2 * wanted_globals * n * h;
    }
    work.rows += 3 * locals * h + outputs * (2 * h + i);
  }
  return work;
}

}  // namespace longview::models
