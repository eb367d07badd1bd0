#include "models/quantize/verdict.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/quantize/comparison.h"

namespace longview::models {
namespace {

constexpr double kLeastShare = 0.995;   // Classes, labels, ranks and boxes.
constexpr double kLeastCosine = 0.995;  // All but one embedding in a hundred.
constexpr double kMostMoreBits = 0.005;
constexpr double kCosinePercentile = 0.01;
constexpr size_t kRankedPlaces = 10;

// The outcomes of both forms for a probe.
struct Both {
  const Probe* probe;
  const Outcome* exact;
  const Outcome* near;
};
using Pairs = std::vector<Both>;

struct Choices {
  std::vector<int64_t> exact, near;
};

Choices Chosen(const Pairs& pairs) {
  Choices all;
  for (const Both& both : pairs) {
    all.exact.insert(all.exact.end(), both.exact->choices.begin(), both.exact->choices.end());
    all.near.insert(all.near.end(), both.near->choices.begin(), both.near->choices.end());
  }
  return all;
}

Metric OfChoices(std::string name, const Pairs& pairs) {
  const Choices all = Chosen(pairs);
  return {.name = std::move(name),
          .value = Agreement(all.exact, all.near),
          .bound = kLeastShare,
          .count = all.exact.size()};
}

// An answer is one choice, of two ends.
Metric OfSpans(const Pairs& pairs) {
  std::vector<int64_t> alike;
  for (const Both& both : pairs) alike.push_back(both.exact->choices == both.near->choices ? 1 : 0);
  return {.name = "equal answers",
          .value = Agreement(std::vector<int64_t>(alike.size(), 1), alike),
          .bound = kLeastShare,
          .count = alike.size()};
}

Metric OfLabels(const Pairs& pairs, const std::vector<std::string>& labels) {
  const Choices all = Chosen(pairs);
  const LabelRecall worst = WorstRecall(all.exact, all.near);
  const auto label = static_cast<size_t>(worst.label);
  const std::string name = worst.label == kRareLabels ? "rare labels"
                           : label < labels.size()    ? labels[label]
                                                      : absl::StrCat("label ", worst.label);
  return {.name = "recall of the worst label",
          .value = worst.recall,
          .bound = kLeastShare,
          .count = all.exact.size(),
          .of = name};
}

Metric OfCosines(const Pairs& pairs) {
  std::vector<double> cosines;
  for (const auto& [probe, exact, near] : pairs) {
    const auto width = static_cast<size_t>(exact->width);
    for (size_t at = 0; at + width <= exact->vectors.size(); at += width) {
      cosines.push_back(Cosine(std::span(exact->vectors).subspan(at, width),
                               std::span(near->vectors).subspan(at, width)));
    }
  }
  const size_t count = cosines.size();
  return {.name = "1st percentile of cosines",
          .value = Percentile(std::move(cosines), kCosinePercentile),
          .bound = kLeastCosine,
          .percent = false,
          .count = count};
}

Metric OfRankings(const Pairs& pairs) {
  struct Query {
    std::vector<double> gains, scores;
  };
  std::map<int, Query> queries;
  for (const auto& [probe, exact, near] : pairs) {
    Query& query = queries[probe->query];
    query.gains.push_back(exact->score);
    query.scores.push_back(near->score);
  }
  double sum = 0;
  for (const auto& [number, query] : queries) {
    sum += Ndcg(query.gains, query.scores, kRankedPlaces);
  }
  return {.name = "nDCG@10",
          .value = sum / static_cast<double>(queries.size()),
          .bound = kLeastShare,
          .count = queries.size()};
}

// How much above the exact form's, which may be exceeded and not undercut.
Metric OfBits(std::string name, const Pairs& pairs) {
  double exact_bits = 0, near_bits = 0;
  for (const auto& [probe, exact, near] : pairs) {
    exact_bits += exact->bits;
    near_bits += near->bits;
  }
  return {.name = std::move(name),
          .value = exact_bits > 0 ? near_bits / exact_bits - 1 : near_bits,
          .bound = kMostMoreBits,
          .at_least = false,
          .count = pairs.size()};
}

Metric OfBoxes(const Pairs& pairs) {
  BoxMatches all;
  for (const auto& [probe, exact, near] : pairs) all += MatchBoxes(exact->boxes, near->boxes);
  return {.name = "F1 of boxes", .value = all.F1(), .bound = kLeastShare, .count = all.exact};
}

Metric MetricOf(Comparison comparison, const Pairs& pairs, const std::vector<std::string>& labels) {
  switch (comparison) {
    case Comparison::kTop1:
      return OfChoices("top-1 agreement", pairs);
    case Comparison::kMaskTop1:
      return OfChoices("top-1 agreement of masks", pairs);
    case Comparison::kSpan:
      return OfSpans(pairs);
    case Comparison::kLabels:
      return OfLabels(pairs, labels);
    case Comparison::kCosine:
      return OfCosines(pairs);
    case Comparison::kRanking:
      return OfRankings(pairs);
    case Comparison::kBitsPerByte:
      return OfBits("bits per byte, more by", pairs);
    case Comparison::kBitsPerToken:
      return OfBits("bits per token of own output, more by", pairs);
    case Comparison::kBoxes:
      break;
  }
  return OfBoxes(pairs);
}

}  // namespace

bool AllHold(std::span<const Metric> metrics) {
  return std::all_of(metrics.begin(), metrics.end(),
                     [](const Metric& metric) { return metric.Holds(); });
}

std::vector<Metric> Compare(const std::vector<Probe>& probes, const std::vector<Outcome>& exact,
                            const std::vector<Outcome>& near,
                            const std::vector<std::string>& labels) {
  std::map<Comparison, Pairs> kinds;
  for (size_t i = 0; i < probes.size(); ++i) {
    kinds[probes[i].comparison].push_back({&probes[i], &exact[i], &near[i]});
  }
  std::vector<Metric> metrics;
  for (const auto& [comparison, pairs] : kinds) {
    metrics.push_back(MetricOf(comparison, pairs, labels));
  }
  return metrics;
}

}  // namespace longview::models
