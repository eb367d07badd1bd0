#include "models/text/scores.h"

#include <algorithm>
#include <cmath>
#include <deque>
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

// log of the softmax's denominator.
double LogSum(std::span<const float> logits) {
  const float top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - top);
  return top + std::log(sum);
}

bool Better(const TokenSpan& a, const TokenSpan& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.first != b.first ? a.first < b.first : a.last < b.last;
}

// The highest score of a span that begins at `first`.
struct Beginning {
  float score = 0;
  int first = 0;
};

bool Worse(const Beginning& a, const Beginning& b) {
  return a.score != b.score ? a.score < b.score : a.first > b.first;
}

// The beginnings at [begin, end), made in one pass over windows of `max_tokens` end logits.
std::vector<Beginning> Beginnings(std::span<const float> start_logits,
                                  std::span<const float> end_logits, int begin, int end,
                                  int max_tokens) {
  std::vector<Beginning> beginnings;
  std::deque<int> window;  // Ascending tokens of falling end logits; the last one is the highest.
  for (int first = end - 1; first >= begin; --first) {
    while (!window.empty() && end_logits[window.front()] <= end_logits[first]) window.pop_front();
    window.push_front(first);
    if (window.back() - first >= max_tokens) window.pop_back();
    beginnings.push_back({start_logits[first] + end_logits[window.back()], first});
  }
  return beginnings;
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

// Spans of the most promising first tokens, until no other can hold one that enters.
std::vector<TokenSpan> BestSpans(std::span<const float> start_logits,
                                 std::span<const float> end_logits, int begin, int end,
                                 int max_tokens, int top_k) {
  std::vector<TokenSpan> best;  // A heap whose front is the worst kept.
  if (begin >= end) return best;
  const auto count = static_cast<size_t>(top_k);
  std::vector<Beginning> beginnings = Beginnings(start_logits, end_logits, begin, end, max_tokens);
  std::make_heap(beginnings.begin(), beginnings.end(), Worse);
  while (!beginnings.empty()) {
    const auto [score, first] = beginnings.front();
    if (best.size() == count && !Better({first, first, score, 0}, best.front())) break;
    std::pop_heap(beginnings.begin(), beginnings.end(), Worse);
    beginnings.pop_back();
    const int64_t limit = std::min<int64_t>(end, int64_t{first} + max_tokens);
    for (int last = first; last < limit; ++last) {
      const TokenSpan span{first, last, start_logits[first] + end_logits[last], 0};
      if (best.size() == count && !Better(span, best.front())) continue;
      if (best.size() == count) {
        std::pop_heap(best.begin(), best.end(), Better);
        best.pop_back();
      }
      best.push_back(span);
      std::push_heap(best.begin(), best.end(), Better);
    }
  }
  std::sort(best.begin(), best.end(), Better);
  const double log_sums = LogSum(start_logits.subspan(begin, end - begin)) +
                          LogSum(end_logits.subspan(begin, end - begin));
  for (TokenSpan& span : best) {
    const double score = double{start_logits[span.first]} + end_logits[span.last];
    span.probability = static_cast<float>(std::exp(score - log_sums));
  }
  return best;
}

}  // namespace longview::models
