// Sequences that remember random numbers instead of what a model made of a text, on the host or on
// a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "kernels/cache/projection_cache.h"

namespace longview::bench {

// Puts bytes of the host where a cache has its blocks.
using PutBytes = std::function<void(void* to, const void* from, size_t bytes)>;

// On the host.
void PutOnHost(void* to, const void* from, size_t bytes);

// A sequence that has read `tokens` tokens, a multiple of 64 or any number that only decoding
// follows; its rows are undefined. Aborts if the budget has no room.
kernels::CacheSequence BlankSequence(kernels::ProjectionCache* cache, int64_t tokens);

// A BlankSequence with rows that are random in every layer; equal seeds, equal rows.
kernels::CacheSequence RandomSequence(kernels::ProjectionCache* cache, int64_t tokens,
                                      uint32_t seed, const PutBytes& put = PutOnHost);

// The rows of `sequence`, which lies in the host's `from`, in a cache of BlockForm::kRows with the
// same layers, heads and strips. REQUIRES: `sequence` has no open segment.
kernels::CacheSequence CopiedSequence(const kernels::ProjectionCache& from,
                                      const kernels::CacheSequence& sequence,
                                      kernels::ProjectionCache* to, const PutBytes& put);

}  // namespace longview::bench
