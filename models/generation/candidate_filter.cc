#include "models/generation/candidate_filter.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace longview::models {
namespace {

bool Better(const Candidate& a, const Candidate& b) {
  return a.score != b.score ? a.score > b.score : a.id < b.id;
}

// Of the distribution the weights stand for, in nats.
double Entropy(const std::vector<Candidate>& kept, double total) {
  double entropy = 0;
  for (const Candidate& candidate : kept) {
    const double p = candidate.weight / total;
    if (p > 0) entropy -= p * std::log(p);
  }
  return entropy;
}

}  // namespace

void CandidateFilter::Load(std::span<const double> scores) {
  constexpr double kBanned = -std::numeric_limits<double>::infinity();
  kept_.clear();
  for (size_t id = 0; id < scores.size(); ++id) {
    if (scores[id] == kBanned) continue;
    kept_.push_back({scores[id] / settings_.temperature, 0, static_cast<int32_t>(id)});
  }
  const auto broken = [](const Candidate& c) { return !std::isfinite(c.score); };
  if (std::any_of(kept_.begin(), kept_.end(), broken)) kept_.clear();
}

void CandidateFilter::Weigh() {
  double best = -std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : kept_) best = std::max(best, candidate.score);
  for (Candidate& candidate : kept_) candidate.weight = std::exp(candidate.score - best);
}

double CandidateFilter::TotalWeight() const {
  double total = 0;
  for (const Candidate& candidate : kept_) total += candidate.weight;
  return total;
}

// The best `count` first and in order; the rest stays behind them.
void CandidateFilter::SortBest(size_t count) {
  count = std::min(count, kept_.size());
  if (count < kept_.size())
    std::nth_element(kept_.begin(), kept_.begin() + count, kept_.end(), Better);
  std::sort(kept_.begin(), kept_.begin() + count, Better);
}

void CandidateFilter::KeepTopK() {
  if (settings_.top_k == 0) return;
  const size_t k = std::max(static_cast<size_t>(settings_.top_k), min_keep_);
  if (k >= kept_.size()) return;
  std::nth_element(kept_.begin(), kept_.begin() + (k - 1), kept_.end(), Better);
  const double threshold = kept_[k - 1].score;
  std::erase_if(kept_, [=](const Candidate& c) { return c.score < threshold; });
}

// A token goes if those above it already have the mass; few are above the cut, so the best are
// sorted in growing parts.
void CandidateFilter::KeepTopP() {
  if (settings_.top_p >= 1) return;
  const double wanted = settings_.top_p * TotalWeight();
  for (size_t sorted = 64;; sorted *= 8) {
    SortBest(sorted);
    double above = 0;
    for (size_t i = 0; i < std::min(sorted, kept_.size()); ++i) {
      if (i >= min_keep_ && above >= wanted) {
        kept_.resize(i);
        return;
      }
      above += kept_[i].weight;
    }
    if (sorted >= kept_.size()) return;
  }
}

void CandidateFilter::KeepMinP() {
  if (settings_.min_p <= 0) return;
  SortBest(min_keep_);
  const auto beyond = kept_.begin() + std::min(min_keep_, kept_.size());
  // The largest weight is 1.
  kept_.erase(std::remove_if(beyond, kept_.end(),
                             [&](const Candidate& c) { return c.weight < settings_.min_p; }),
              kept_.end());
}

// Tokens whose surprise is nearest to the entropy, until they have the mass.
void CandidateFilter::KeepTypical() {
  if (settings_.typical_p >= 1) return;
  const double total = TotalWeight();
  const double entropy = Entropy(kept_, total);
  by_distance_ = kept_;
  const auto distance = [&](const Candidate& c) {
    return std::abs(-std::log(c.weight / total) - entropy);
  };
  std::sort(by_distance_.begin(), by_distance_.end(), [&](const Candidate& a, const Candidate& b) {
    const double da = distance(a), db = distance(b);
    return da != db ? da < db : a.id < b.id;
  });
  double mass = 0;
  size_t last = 0;
  for (; last + 1 < by_distance_.size(); ++last) {
    mass += by_distance_[last].weight / total;
    if (mass >= settings_.typical_p) break;
  }
  last = std::max(last, std::min(min_keep_, by_distance_.size()) - 1);
  by_distance_.resize(last + 1);
  kept_.swap(by_distance_);
}

void CandidateFilter::KeepAbove(double cutoff, bool by_entropy) {
  if (cutoff <= 0) return;
  const double total = TotalWeight();
  if (by_entropy) cutoff = std::min(cutoff, std::sqrt(cutoff) * std::exp(-Entropy(kept_, total)));
  SortBest(min_keep_);
  const auto beyond = kept_.begin() + std::min(min_keep_, kept_.size());
  kept_.erase(std::remove_if(beyond, kept_.end(),
                             [&](const Candidate& c) { return c.weight / total < cutoff; }),
              kept_.end());
}

std::span<const Candidate> CandidateFilter::Keep(std::span<const double> scores) {
  Load(scores);
  KeepTopK();
  Weigh();
  if (kept_.empty()) return kept_;
  KeepTopP();
  KeepMinP();
  KeepTypical();
  KeepAbove(settings_.epsilon_cutoff, false);
  KeepAbove(settings_.eta_cutoff, true);
  return kept_;
}

}  // namespace longview::models
