// The memory that a decoder's sequences share: whose it is, how much room its steps need, what is
// said of it. Thread-safe: functions of thread-safe arguments.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "kernels/cache/cache_budget.h"
#include "kernels/cache/projection_cache.h"
#include "models/generation.h"
#include "models/model.h"

namespace longview::models {

// Memory of a decoder's state: shared with other models, or its own.
class CacheRoom {
 public:
  // Room of its own, so many bytes.
  CacheRoom(double bytes) : bytes_(static_cast<int64_t>(bytes)) {}  // NOLINT: bytes mean this.
  // Borrowed; outlives the decoder.
  explicit CacheRoom(kernels::CacheMemory& shared) : shared_(&shared) {}

  std::unique_ptr<kernels::CacheBudget> Open() const;
  int64_t capacity() const;  // Bytes, of all who share it.

 private:
  kernels::CacheMemory* shared_ = nullptr;
  int64_t bytes_ = 0;
};

// Bytes of a budget that something beside its caches holds. On the executor's thread.
class HeldBytes {
 public:
  // The budget outlives it.
  explicit HeldBytes(kernels::CacheBudget& budget) : budget_(budget) {}
  ~HeldBytes() { Keep(0); }
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;

  // Takes so many more bytes. False: there is no room, and nothing is taken.
  bool Take(int64_t bytes);
  // Gives back all but so many.
  void Keep(int64_t bytes);

 private:
  kernels::CacheBudget& budget_;
  int64_t bytes_ = 0;
};

// The room of a model that runs on `device`.
CacheRoom RoomOf(const LoadOptions& options, std::string_view device);

// Options of a cache whose sequences are read and forked by steps.
kernels::ProjectionCache::Options StepCacheOptions();

// RESOURCE_EXHAUSTED: the budget's addresses cannot be had; `origin` begins the message.
absl::Status NoAddresses(std::string_view origin, const kernels::CacheBudget& budget);

// Thread-safe.
CacheUse UseOf(const kernels::CacheBudget& budget);

}  // namespace longview::models
