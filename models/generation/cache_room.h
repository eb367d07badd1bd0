// The memory that a decoder's sequences share: how much room its steps need, what is said of it.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "kernels/cache/cache_budget.h"
#include "kernels/cache/projection_cache.h"
#include "models/generation.h"

namespace longview::models {

// Of a cache whose sequences are read and forked by steps.
kernels::ProjectionCache::Options StepCacheOptions();

// RESOURCE_EXHAUSTED: the budget's addresses cannot be had; `origin` begins the message.
absl::Status NoAddresses(std::string_view origin, const kernels::CacheBudget& budget);

// Thread-safe.
CacheUse UseOf(const kernels::CacheBudget& budget);

}  // namespace longview::models
