// How the last hidden states of a document's tokens become one vector, by the modes of
// sentence-transformers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/config/sentence_config.h"

namespace longview::models {

// The vectors of `modes` side by side, [modes * width], from the rows of `tokens` among those of a
// document, [document, width], to `out`. No token: zeros.
void PoolTokens(std::span<const PoolMode> modes, const float* rows, std::span<const int32_t> tokens,
                int64_t width, float* out);

}  // namespace longview::models
