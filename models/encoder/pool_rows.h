// How the last hidden states of a document's tokens become one vector, by the modes of
// sentence-transformers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/config/sentence_config.h"

namespace longview::models {

// The vectors of `modes` side by side, [modes * width], from rows [tokens, width] of a document.
// `counts` per token: 0 = left out. Without a token that counts: zeros.
std::vector<float> PoolTokens(std::span<const PoolMode> modes, const float* rows,
                              std::span<const uint8_t> counts, int64_t width);

}  // namespace longview::models
