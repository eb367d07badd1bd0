// The candidates of sampling: scores by temperature, then only the tokens that top-k, top-p, min-p,
// typical, epsilon and eta sampling leave, in this order (HuggingFace's logits warpers).
//
// Equal scores at a cut: top-k keeps all of them, the others the lower id first.
// Not thread-safe: keeps its buffer between calls.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/generation/options/settings.h"

namespace longview::models {

struct Candidate {
  double score = 0;   // After temperature.
  double weight = 0;  // exp(score - the largest score).
  int32_t id = 0;
};

class CandidateFilter {
 public:
  // `settings` is borrowed. At least `min_keep` tokens stay, of those that were not banned before:
  // beam search needs one more than there are ends.
  CandidateFilter(const GenerationSettings& settings, int min_keep)
      : settings_(settings), min_keep_(static_cast<size_t>(min_keep)) {}

  // Whether it keeps every token.
  bool neutral() const;

  // Candidates left, in the order of their ids; empty if every score is -infinity or one is NaN or
  // +infinity. Valid until the next call.
  std::span<const Candidate> Keep(std::span<const double> scores);

 private:
  bool Load(std::span<const double> scores);
  void TrimTo(size_t count);
  void Weigh();
  void SortBest(size_t count);
  void KeepTopP();
  void KeepMinP();
  void KeepTypical();
  void KeepAbove(double cutoff, bool by_entropy);
  double TotalWeight() const;

  const GenerationSettings& settings_;
  const size_t min_keep_;
  std::vector<Candidate> kept_;
  std::vector<Candidate> by_distance_;
  std::vector<float> exponents_;
};

}  // namespace longview::models
