#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "kernels/cache/cache_memory.h"
#include "models/model.h"

namespace longview::models {

struct CachePool::Devices {
  explicit Devices(int64_t of_each) : bytes(of_each) {}

  const int64_t bytes;
  absl::Mutex mutex;
  // A device's memory by its name. References are handed out: elements of a std::map never move.
  std::map<std::string, kernels::CacheMemory, std::less<>> memory ABSL_GUARDED_BY(mutex);
};

CachePool::CachePool(double bytes_per_device)
    : devices_(std::make_unique<Devices>(static_cast<int64_t>(bytes_per_device))) {}

CachePool::~CachePool() = default;

kernels::CacheMemory& CachePool::On(std::string_view device) {
  absl::MutexLock lock(&devices_->mutex);
  const auto it = devices_->memory.find(device);
  if (it != devices_->memory.end()) return it->second;
  return devices_->memory.try_emplace(std::string(device), devices_->bytes).first->second;
}

}  // namespace longview::models
