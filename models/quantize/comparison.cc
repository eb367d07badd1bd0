#include "models/quantize/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "kernels/vision/nms.h"

namespace longview::models {
namespace {

constexpr float kLeastOverlap = 0.5F;

kernels::Box BoxOf(const Detection& found) { return {found.x0, found.y0, found.x1, found.y1}; }

// Sum of the gains of the first places of an order, each by the logarithm of its place.
double DiscountedGain(std::span<const double> gains, std::span<const size_t> order) {
  double sum = 0;
  for (size_t place = 0; place < order.size(); ++place) {
    sum += gains[order[place]] / std::log2(static_cast<double>(place) + 2);
  }
  return sum;
}

// The first `places` by score; equal scores keep their order.
std::vector<size_t> BestPlaces(std::span<const double> scores, size_t places) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  order.resize(std::min(order.size(), places));
  return order;
}

}  // namespace

double Agreement(std::span<const int64_t> exact, std::span<const int64_t> near) {
  if (exact.empty()) return 1;
  size_t alike = 0;
  for (size_t i = 0; i < exact.size(); ++i) alike += exact[i] == near[i] ? 1 : 0;
  return static_cast<double>(alike) / static_cast<double>(exact.size());
}

double Cosine(std::span<const float> a, std::span<const float> b) {
  double product = 0, square_a = 0, square_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    product += double{a[i]} * b[i];
    square_a += double{a[i]} * a[i];
    square_b += double{b[i]} * b[i];
  }
  if (square_a == 0 && square_b == 0) return 1;
  if (square_a == 0 || square_b == 0) return 0;
  return product / std::sqrt(square_a * square_b);
}

double Percentile(std::vector<double> values, double share) {
  const double rank = std::ceil(share * static_cast<double>(values.size()));
  const auto place = static_cast<size_t>(std::max(rank, 1.0)) - 1;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(place),
                   values.end());
  return values[place];
}

LabelRecall WorstRecall(std::span<const int64_t> exact, std::span<const int64_t> near) {
  std::map<int64_t, size_t> tokens;
  for (const int64_t label : exact) ++tokens[label];
  struct Count {
    size_t tokens = 0, kept = 0;
  };
  std::map<int64_t, Count> counts;
  for (size_t i = 0; i < exact.size(); ++i) {
    const bool rare = tokens[exact[i]] < kRareLabel;
    Count& count = counts[rare ? kRareLabels : exact[i]];
    ++count.tokens;
    count.kept += exact[i] == near[i] ? 1 : 0;
  }
  LabelRecall worst;
  for (const auto& [label, count] : counts) {
    const double recall = static_cast<double>(count.kept) / static_cast<double>(count.tokens);
    const bool more = recall == worst.recall && count.tokens > worst.tokens;
    if (recall < worst.recall || more) worst = {recall, label, count.tokens};
  }
  return worst;
}

double Ndcg(std::span<const double> gains, std::span<const double> scores, size_t places) {
  if (gains.empty()) return 1;
  const double least = *std::min_element(gains.begin(), gains.end());
  std::vector<double> above(gains.begin(), gains.end());
  for (double& gain : above) gain -= least;
  const double best = DiscountedGain(above, BestPlaces(gains, places));
  if (best == 0) return 1;
  return DiscountedGain(above, BestPlaces(scores, places)) / best;
}

BoxMatches& BoxMatches::operator+=(const BoxMatches& other) {
  matched += other.matched;
  exact += other.exact;
  near += other.near;
  return *this;
}

double BoxMatches::F1() const {
  if (exact + near == 0) return 1;
  return 2 * static_cast<double>(matched) / static_cast<double>(exact + near);
}

BoxMatches MatchBoxes(std::span<const Detection> exact, std::span<const Detection> near) {
  BoxMatches matches = {.exact = exact.size(), .near = near.size()};
  std::vector<bool> taken(exact.size());
  for (const Detection& box : near) {
    size_t best = exact.size();
    float overlap = kLeastOverlap;
    for (size_t i = 0; i < exact.size(); ++i) {
      if (taken[i] || exact[i].id != box.id) continue;
      const float own = kernels::Overlap(BoxOf(exact[i]), BoxOf(box));
      if (own < overlap || (own == overlap && best != exact.size())) continue;
      best = i;
      overlap = own;
    }
    if (best == exact.size()) continue;
    taken[best] = true;
    ++matches.matched;
  }
  return matches;
}

}  // namespace longview::models
