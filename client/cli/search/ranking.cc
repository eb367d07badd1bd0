#include "client/cli/search/ranking.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace longview::client {
namespace {

constexpr double kSaturation = 1.5;    // k1
constexpr double kLengthShare = 0.75;  // b

double Mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) /
         static_cast<double>(values.empty() ? 1 : values.size());
}

void AddZScores(std::span<const double> scores, std::vector<double>* sums) {
  const double mean = Mean(scores);
  double squares = 0;
  for (const double score : scores) squares += (score - mean) * (score - mean);
  const double deviation =
      std::sqrt(squares / static_cast<double>(scores.empty() ? 1 : scores.size()));
  if (!(deviation > 0)) return;
  for (size_t i = 0; i < scores.size(); ++i) (*sums)[i] += (scores[i] - mean) / deviation;
}

}  // namespace

std::vector<double> Bm25Scores(std::span<const WordCounts> passages) {
  std::vector<double> scores(passages.size(), 0.0);
  double words = 0;
  std::vector<double> having;  // Passages that have a stem, by stem.
  for (const WordCounts& passage : passages) {
    words += static_cast<double>(passage.words);
    having.resize(std::max(having.size(), passage.counts.size()), 0.0);
    for (size_t t = 0; t < passage.counts.size(); ++t) having[t] += passage.counts[t] > 0 ? 1 : 0;
  }
  if (words == 0) return scores;
  const auto count = static_cast<double>(passages.size());
  const double average = words / count;
  for (double& each : having) each = std::log1p((count - each + 0.5) / (each + 0.5));
  for (size_t i = 0; i < passages.size(); ++i) {
    const double length = static_cast<double>(passages[i].words) / average;
    const double room = kSaturation * (1 - kLengthShare + kLengthShare * length);
    for (size_t t = 0; t < passages[i].counts.size(); ++t) {
      const double times = passages[i].counts[t];
      scores[i] += having[t] * times / (times + room);
    }
  }
  return scores;
}

std::vector<double> SumOfZScores(std::span<const double> first, std::span<const double> second) {
  std::vector<double> sums(first.size(), 0.0);
  AddZScores(first, &sums);
  AddZScores(second, &sums);
  return sums;
}

}  // namespace longview::client
