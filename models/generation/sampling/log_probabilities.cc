#include "models/generation/sampling/log_probabilities.h"

#include <algorithm>
#include <cmath>

#include "models/generation/sampling/row_math.h"

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
  const float largest = FindPeak(logits).value;
  return {largest, std::log(SumOfExponentials(logits, largest))};
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
  const auto better = [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  std::vector<int32_t> best;
  for (int32_t token = 0; token < static_cast<int32_t>(logits.size()); ++token) {
    const bool full = static_cast<int>(best.size()) == count;
    if (full && !(logits[token] > logits[best.back()])) continue;
    if (full) best.pop_back();
    best.insert(std::upper_bound(best.begin(), best.end(), token, better), token);
  }
  report.top.reserve(best.size());
  for (const int32_t token : best) report.top.push_back(entry(token));
  return report;
}

}  // namespace longview::models
