// What follows from an image's size and is dear to find out, kept for the sizes asked for last:
// most requests of a model come in few sizes. Thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "models/image/pipeline.h"

namespace longview::models {

class SizeMemo {
 public:
  explicit SizeMemo(size_t most = 64) : most_(most) {}

  // find() of that size, which is called without the lock: two threads may both do the work.
  template <typename Find>
  size_t Of(ImageSize size, Find&& find) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = std::find_if(kept_.begin(), kept_.end(),
                                      [&](const Kept& kept) { return kept.first == size; });
      if (found != kept_.end()) {
        std::rotate(kept_.begin(), found, found + 1);
        return kept_.front().second;
      }
    }
    const size_t value = find();
    const std::lock_guard lock(mutex_);
    kept_.insert(kept_.begin(), {size, value});
    if (kept_.size() > most_) kept_.pop_back();
    return value;
  }

 private:
  using Kept = std::pair<ImageSize, size_t>;

  const size_t most_;
  std::mutex mutex_;
  std::vector<Kept> kept_;  // The last used first. Guarded by mutex_.
};

}  // namespace longview::models
