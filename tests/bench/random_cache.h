// Sequences that remember random numbers instead of what a model made of a text.
#pragma once

#include <cstdint>

#include "kernels/cache/projection_cache.h"

namespace longview::bench {

// A sequence of `tokens` tokens, a multiple of 64 or any number that only decoding follows, whose
// rows are random in every layer; equal seeds, equal rows. Aborts if the budget has no room.
kernels::CacheSequence RandomSequence(kernels::ProjectionCache* cache, int64_t tokens,
                                      uint32_t seed);

}  // namespace longview::bench
