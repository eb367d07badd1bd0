#include "models/generation/decoder/cache_room.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace longview::models {

std::unique_ptr<kernels::CacheBudget> CacheRoom::Open() const {
  if (shared_ != nullptr) return std::make_unique<kernels::CacheBudget>(*shared_);
  return std::make_unique<kernels::CacheBudget>(bytes_);
}

int64_t CacheRoom::capacity() const { return shared_ != nullptr ? shared_->capacity() : bytes_; }

bool HeldBytes::Take(int64_t bytes) {
  const auto lock = budget_.Lock();
  if (!budget_.MakeRoom(bytes)) return false;
  budget_.AddUsed(bytes);
  bytes_ += bytes;
  return true;
}

void HeldBytes::Keep(int64_t bytes) {
  const auto lock = budget_.Lock();
  budget_.AddUsed(bytes - std::exchange(bytes_, bytes));
}

CacheRoom RoomOf(const LoadOptions& options, std::string_view device) {
  if (options.cache != nullptr) return CacheRoom(options.cache->On(device));
  return options.cache_bytes;
}

// The most a step of a busy server may carry; beyond it the cache may have to evict earlier.
kernels::ProjectionCache::Options StepCacheOptions() {
  kernels::ProjectionCache::Options options;
  options.step_tokens = 4096;
  options.step_sequences = 256;
  return options;
}

absl::Status NoAddresses(std::string_view origin, const kernels::CacheBudget& budget) {
  return absl::ResourceExhaustedError(absl::StrCat(std::string(origin), ": cannot reserve ",
                                                   budget.capacity(), " bytes of addresses"));
}

CacheUse UseOf(const kernels::CacheBudget& budget) {
  return {static_cast<double>(budget.used()), static_cast<double>(budget.evictable()),
          static_cast<double>(budget.capacity()), static_cast<double>(budget.memory().used())};
}

}  // namespace longview::models
