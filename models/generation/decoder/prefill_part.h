// How a long prompt is read.
#pragma once

#include <algorithm>
#include <cstdint>

namespace longview::models {

// Tokens of one sequence in one pass over the layers, at most: a step that was granted more reads
// them in several passes, so that no pass needs more scratch than its requests were priced with.
// A multiple of kernels::kBlockSlots, so that the pieces begin at blocks of the cache.
inline constexpr int kPrefillPart = 2048;

// Tokens that the next pass reads, of `left` from position `start` on. Cuts lie at absolute
// positions, so that they are the same however a text is fed.
inline int64_t PrefillPart(int64_t start, int64_t left) {
  return std::min(left, kPrefillPart - start % kPrefillPart);
}

}  // namespace longview::models
