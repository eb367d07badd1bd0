// How the next token of a sequence is chosen, for whoever has its logits: the host (sampler.h), or
// a decoder that keeps them on a device (models/generation/sampling/device_sampler.h).
//
// Plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "models/generation/options/settings.h"
#include "models/generation/sampling/logits_processors.h"
#include "models/generation/sampling/token_history.h"

namespace longview::models {

// Everything is borrowed.
struct TokenChoice {
  const GenerationSettings* settings = nullptr;
  const LogitsProcessors* processors = nullptr;
  const TokenHistory* history = nullptr;
  int sample = 0;
  bool scores = false;  // Whether the token's log-probability is wanted without settings.logprobs.
};

struct TokenProbability {
  int32_t id = 0;
  float logprob = 0;
};

struct ChosenToken {
  absl::StatusOr<int32_t> id;         // Errors are Sampler's.
  float logprob = 0;                  // The token's own, with settings.logprobs or scores.
  std::vector<TokenProbability> top;  // Most probable tokens, best first, with settings.logprobs.
};

}  // namespace longview::models
