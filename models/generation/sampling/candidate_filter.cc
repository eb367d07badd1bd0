#include "models/generation/sampling/candidate_filter.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/generation/sampling/row_math.h"

namespace longview::models {
namespace {

bool Better(const Candidate& a, const Candidate& b) {
  return a.score != b.score ? a.score > b.score : a.id < b.id;
}

// Entropy of the distribution the weights stand for, in nats.
double Entropy(const std::vector<Candidate>& kept, double total) {
  double entropy = 0;
  for (const Candidate& candidate : kept) {
    const double p = candidate.weight / total;
    if (p > 0) entropy -= p * std::log(p);
  }
  return entropy;
}

}  // namespace

bool CandidateFilter::neutral() const {
  return settings_.top_k == 0 && settings_.top_p >= 1 && settings_.min_p <= 0 &&
         settings_.typical_p >= 1 && settings_.epsilon_cutoff <= 0 && settings_.eta_cutoff <= 0;
}

// Drops what is below the best `count`; scores equal to the last of them stay.
void CandidateFilter::TrimTo(size_t count) {
  if (count >= kept_.size()) return;
  const auto last = kept_.begin() + static_cast<ptrdiff_t>(count - 1);
  std::nth_element(kept_.begin(), last, kept_.end(), Better);
  const double threshold = last->score;
  std::erase_if(kept_, [=](const Candidate& c) { return c.score < threshold; });
}

// The scores that are not banned, with top-k those among the k best. Returns false if one is
// broken.
bool CandidateFilter::Load(std::span<const double> scores) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const size_t limit = settings_.top_k > 0
                           ? std::max(static_cast<size_t>(settings_.top_k), min_keep_)
                           : scores.size();
  size_t trim_at = 2 * limit;
  double least = -kInfinity;
  kept_.clear();
  for (size_t id = 0; id < scores.size(); ++id) {
    const double score = scores[id];
    if (!(score < kInfinity)) return false;
    if (score < least || score == -kInfinity) continue;
    kept_.push_back({score, 0, static_cast<int32_t>(id)});
    if (kept_.size() < trim_at) continue;
    TrimTo(limit);
    least = std::min_element(kept_.begin(), kept_.end(), [](const auto& a, const auto& b) {
              return a.score < b.score;
            })->score;
    trim_at = kept_.size() + limit;
  }
  TrimTo(limit);
  for (Candidate& candidate : kept_) candidate.score /= settings_.temperature;
  return true;
}

void CandidateFilter::Weigh() {
  double best = -std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : kept_) best = std::max(best, candidate.score);
  exponents_.resize(kept_.size());
  for (size_t i = 0; i < kept_.size(); ++i) {
    exponents_[i] = static_cast<float>(kept_[i].score - best);
  }
  Exponentials(exponents_, exponents_);
  for (size_t i = 0; i < kept_.size(); ++i) kept_[i].weight = exponents_[i];
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

// A token goes if those above it already have the mass; few are above the cut, so the best are
// sorted in growing parts.
void CandidateFilter::KeepTopP() {
  if (settings_.top_p >= 1) return;
  const double total = TotalWeight();
  const double wanted = settings_.top_p * total;
  if (min_keep_ == 1) {
    // All of these together have less than the mass that goes.
    const double negligible = (1 - settings_.top_p) * total / (2.0 * kept_.size());
    std::erase_if(kept_, [=](const Candidate& c) { return c.weight < negligible; });
  }
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
  if (!Load(scores)) kept_.clear();
  if (kept_.empty()) return kept_;
  Weigh();
  KeepTopP();
  KeepMinP();
  KeepTypical();
  KeepAbove(settings_.epsilon_cutoff, false);
  KeepAbove(settings_.eta_cutoff, true);
  const auto by_id = [](const Candidate& a, const Candidate& b) { return a.id < b.id; };
  if (!std::is_sorted(kept_.begin(), kept_.end(), by_id)) {
    std::sort(kept_.begin(), kept_.end(), by_id);
  }
  return kept_;
}

}  // namespace longview::models
