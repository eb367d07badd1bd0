// Changes the scores of the next token before it is chosen, in the order of HuggingFace's
// generate (transformers 5, GenerationMixin._get_logits_processor): sequence bias, repetition
// penalties (behind them OpenAI's frequency and presence penalties, as in vLLM), n-gram and word
// bans, minimum lengths, forced tokens, decay, suppressed tokens. What only sampling has
// (temperature and after) is candidate_filter.h.
//
// Greedy search and sampling give it logits, beam search log-probabilities.
// Scores are fp64: penalties of large logits lose the fifth digit of a probability in fp32.
// Immutable: thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/generation/options/settings.h"
#include "models/generation/sampling/token_history.h"

namespace longview::models {

class LogitsProcessors {
 public:
  // `settings` is borrowed. `source`: what the encoder read; of a model without one, the prompt.
  LogitsProcessors(const GenerationSettings& settings, std::span<const int32_t> source);

  // Whether Apply leaves every history's scores alone.
  bool neutral() const { return neutral_; }
  // Whether Apply needs TokenHistory::distinct.
  bool needs_distinct() const { return settings_.repetition_penalty != 1; }
  // Whether it needs TokenHistory::counts.
  bool needs_counts() const {
    return settings_.frequency_penalty != 0 || settings_.presence_penalty != 0;
  }

  // Ids that may not come next, each once, in rising order: what follows of n-grams and words that
  // are banned, ends that are too early, suppressed tokens. Where there are only these and a
  // repetition penalty, scores that were penalised and then banned are what Apply makes.
  std::vector<int32_t> Banned(const TokenHistory& history) const;

  // Biases of sequence_bias, added before anything else; each id once, in rising order.
  struct Bias {
    int32_t id = 0;
    double bias = 0;
  };
  std::vector<Bias> Biases(const TokenHistory& history) const;

  // `scores`: [vocabulary], changed in place; a banned token's are -infinity.
  void Apply(const TokenHistory& history, std::span<double> scores) const;

 private:
  // Bans before tokens are forced, and after.
  void AddRepeats(const TokenHistory& history, std::vector<int32_t>& banned) const;
  void AddSuppressed(const TokenHistory& history, std::vector<int32_t>& banned) const;
  void Force(const TokenHistory& history, std::span<double> scores) const;
  void Decay(const TokenHistory& history, std::span<double> scores) const;

  const GenerationSettings& settings_;
  std::vector<int32_t> source_;           // If n-grams of it are banned.
  std::vector<int32_t> source_distinct_;  // If they are penalised.
  bool neutral_;
};

}  // namespace longview::models
