// How a long prompt is read.
#pragma once

namespace longview::models {

// Tokens of one sequence in one pass over the layers, at most: a step that was granted more reads
// them in several passes, so that no pass needs more scratch than its requests were priced with.
// A multiple of kernels::kBlockSlots, so that the pieces begin at blocks of the cache.
inline constexpr int kPrefillPart = 2048;

}  // namespace longview::models
