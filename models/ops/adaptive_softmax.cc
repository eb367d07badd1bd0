#include "models/ops/adaptive_softmax.h"

#include <algorithm>
#include <cmath>

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

}  // namespace longview::models
