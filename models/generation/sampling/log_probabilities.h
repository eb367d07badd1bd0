// Log-probabilities of the model's own distribution: of its logits as they are, before penalties,
// bans and temperature.
// Thread-safe: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/generation.h"
#include "models/text/text_codec.h"

namespace longview::models {

// [vocabulary] -> [vocabulary]. REQUIRES: the same size.
void LogSoftmax(std::span<const float> logits, std::span<double> out);

// Log-probability of one token.
float LogProbability(std::span<const float> logits, int32_t id);

// One token's entry, and the `count` most probable ones, best first, the lower id first among
// equals. `codec` may be null: no bytes.
struct TokenReport {
  TokenLogprob own;
  std::vector<TokenLogprob> top;
};
TokenReport ReportToken(std::span<const float> logits, int32_t id, int count,
                        const TextCodec* codec);

}  // namespace longview::models
