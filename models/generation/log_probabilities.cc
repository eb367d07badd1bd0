#include "models/generation/log_probabilities.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace longview::models {

namespace {

// A row's largest logit and log(sum(exp(logit - largest))): subtracted one after the other, as
// PyTorch does, they round alike for sums that are equal.
struct Norm {
  float largest;
  double log_sum;

  double LogProbability(float logit) const { return double{logit} - largest - log_sum; }
};

Norm NormOf(std::span<const float> logits) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - largest);
  return {largest, std::log(sum)};
}

}  // namespace

void LogSoftmax(std::span<const float> logits, std::span<double> out) {
  const Norm norm = NormOf(logits);
  for (size_t i = 0; i < logits.size(); ++i) out[i] = norm.LogProbability(logits[i]);
}

float LogProbability(std::span<const float> logits, int32_t id) {
  return static_cast<float>(NormOf(logits).LogProbability(logits[id]));
}

TokenReport ReportToken(std::span<const float> logits, int32_t id, int count,
                        const TextCodec* codec) {
  const Norm norm = NormOf(logits);
  const auto entry = [&](int32_t token) {
    return TokenLogprob{token, static_cast<float>(norm.LogProbability(logits[token])),
                        codec == nullptr ? std::string() : codec->Bytes(token)};
  };
  TokenReport report;
  report.own = entry(id);
  if (count == 0) return report;
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto end = order.begin() + std::min<size_t>(count, order.size());
  std::partial_sort(order.begin(), end, order.end(), [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  for (auto token = order.begin(); token != end; ++token) report.top.push_back(entry(*token));
  return report;
}

}  // namespace longview::models
