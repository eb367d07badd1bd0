#include "models/text/answer_span.h"

#include <algorithm>
#include <cmath>
#include <deque>

namespace longview::models {
namespace {

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
