#include "models/text/scores.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace longview::models {
namespace {

// log of sum of exp(logit).
double LogSumExp(std::span<const float> logits) {
  const float top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - top);
  return top + std::log(sum);
}

std::vector<int> HighestFirst(std::span<const float> values, size_t count) {
  std::vector<int> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  const auto better = [&](int a, int b) {
    return values[a] != values[b] ? values[a] > values[b] : a < b;
  };
  count = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(count), order.end(),
                    better);
  order.resize(count);
  return order;
}

}  // namespace

std::vector<float> Softmax(std::span<const float> logits) {
  if (logits.empty()) return {};
  const double log_sum = LogSumExp(logits);
  std::vector<float> result;
  result.reserve(logits.size());
  for (const float logit : logits) {
    result.push_back(static_cast<float>(std::exp(double{logit} - log_sum)));
  }
  return result;
}

std::vector<float> Probabilities(std::span<const float> logits, ProblemType type) {
  if (type == ProblemType::kSingleLabel) return Softmax(logits);
  std::vector<float> result(logits.begin(), logits.end());
  if (type == ProblemType::kMultiLabel) {
    for (float& value : result) value = static_cast<float>(1.0 / (1.0 + std::exp(-double{value})));
  }
  return result;
}

std::vector<LabelScore> RankLabels(std::span<const float> logits,
                                   std::span<const std::string> labels, ProblemType type,
                                   int top_k) {
  const std::vector<float> scores = Probabilities(logits, type);
  const size_t count = top_k > 0 ? static_cast<size_t>(top_k) : scores.size();
  std::vector<int> order;
  if (type == ProblemType::kRegression) {
    order.resize(std::min(count, scores.size()));
    std::iota(order.begin(), order.end(), 0);
  } else {
    // By logit: probabilities of very sure models round to equal values.
    order = HighestFirst(logits, count);
  }
  std::vector<LabelScore> result;
  for (const int id : order) result.push_back({id, labels[id], scores[id]});
  return result;
}

std::vector<ScoredToken> TopTokens(std::span<const float> logits, int k) {
  std::vector<ScoredToken> result;
  if (logits.empty()) return result;
  const double log_sum = LogSumExp(logits);
  for (const int id : HighestFirst(logits, static_cast<size_t>(std::max(k, 0)))) {
    result.push_back({id, static_cast<float>(logits[id] - log_sum)});
  }
  return result;
}

std::vector<float> MeanRows(const float* rows, std::span<const uint8_t> roles, int width) {
  std::vector<double> sums(static_cast<size_t>(width));
  int64_t count = 0;
  for (size_t t = 0; t < roles.size(); ++t) {
    if (roles[t] == 0) continue;
    ++count;
    const float* row = rows + static_cast<int64_t>(t) * width;
    for (int i = 0; i < width; ++i) sums[i] += row[i];
  }
  std::vector<float> mean;
  mean.reserve(sums.size());
  for (const double sum : sums) {
    mean.push_back(static_cast<float>(sum / std::max(static_cast<double>(count), 1e-9)));
  }
  return mean;
}

void NormalizeVector(std::span<float> vector) {
  double squares = 0;
  for (const float value : vector) squares += double{value} * value;
  const double factor = 1.0 / std::max(std::sqrt(squares), 1e-12);
  for (float& value : vector) value = static_cast<float>(value * factor);
}

}  // namespace longview::models
