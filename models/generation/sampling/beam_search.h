// Beam search over one prompt, as HuggingFace's generate does it since 4.50
// (GenerationMixin._beam_search): per step the best 2K continuations of K beams (more with several
// ends); those that end among the first K compete for K finished places by length-penalised
// score; the best K that go on are the next beams. With GenerationSettings::sample the
// continuations are drawn without replacement instead (Gumbel noise, keyed by the seed).
//
// Pure: it sees rows of logits and says which beam each next beam continues; sequences in a decoder
// are the caller's.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "models/generation/options/settings.h"
#include "models/generation/sampling/candidate_filter.h"
#include "models/generation/sampling/log_probabilities.h"
#include "models/generation/sampling/logits_processors.h"
#include "models/generation/sampling/token_history.h"
#include "models/text/text_codec.h"

namespace longview::models {

class BeamSearch {
 public:
  struct Finished {
    std::vector<int32_t> tokens;       // Generated ones, with the end if there is one.
    std::vector<TokenReport> reports;  // Reports of the tokens, if settings.logprobs.
    double score = 0;                  // Sum of log-probabilities / tokens^length_penalty.
    bool ended = false;                // By an end or stop token; else by max_length.
  };

  // `settings` (beams at least 1, max_new_tokens at least 1), `processors` and `codec` (for
  // reports; may be null) are borrowed.
  BeamSearch(const GenerationSettings& settings, const LogitsProcessors& processors,
             TokenHistory prompt, const TextCodec* codec);

  // One step. logits: of each running beam, [vocabulary]; in the first step all are the prompt's.
  // INTERNAL if a logit is not a number. REQUIRES: not done(); as many rows as beams, which are
  // settings.beams at first and parents().size() later.
  absl::Status Advance(std::span<const std::span<const float>> logits);

  bool done() const { return done_; }
  // After a step that did not finish the search: the beam of the step before that each beam
  // continues, and its new token.
  std::span<const int> parents() const { return parents_; }
  int32_t token(int beam) const { return running_[beam].history.ids().back(); }

  // The best settings.sequences of them, best first; fewer if not as many ended. Once.
  // REQUIRES: done().
  std::vector<Finished> Take();

 private:
  struct Beam {
    TokenHistory history;
    std::vector<TokenReport> reports;
    double score;
  };
  struct Continuation {
    double score;
    int beam;
    int32_t token;
    double order;  // Rank of candidates: the score, or the score with noise.
    bool hit;      // Ends here.
    bool at_end_token;
  };
  struct Place {
    double score;
    bool finished = false;
    Finished result;
  };

  absl::Status Score(std::span<const std::span<const float>> logits);
  void Rank();
  void KeepFinished(std::span<const std::span<const float>> logits);
  void KeepRunning(std::span<const std::span<const float>> logits);
  void JudgeEnd();
  TokenReport Report(std::span<const float> logits, int32_t token) const;

  const GenerationSettings& settings_;
  const LogitsProcessors& processors_;
  const TextCodec* const codec_;
  CandidateFilter filter_;
  int step_ = 0;
  bool done_ = false;
  bool improvable_ = true;  // No early stop by the heuristic so far.
  std::vector<Beam> running_;
  std::vector<Place> places_;  // Best first.
  std::vector<int> parents_;
  std::vector<double> scores_;        // [beams, vocabulary]
  std::vector<Continuation> ranked_;  // Best first.
};

}  // namespace longview::models
