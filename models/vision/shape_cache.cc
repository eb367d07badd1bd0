#include "models/vision/shape_cache.h"

#include <algorithm>

namespace longview::models {

size_t ShapeCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

size_t ShapeCache::size() const {
  const std::lock_guard lock(mutex_);
  return kept_.size();
}

std::shared_ptr<ShapeCache::Entry> ShapeCache::Use(const Key& key) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Entry>& entry = kept_[key];
  if (entry == nullptr) entry = std::make_shared<Entry>();
  entry->used = ++uses_;
  return entry;
}

// A value larger than the cache would empty it and not stay.
void ShapeCache::Count(const Key& key, Entry& entry, size_t value_bytes) {
  const std::lock_guard lock(mutex_);
  entry.bytes = sizeof(Entry) + BytesOf(key) + value_bytes;
  if (entry.bytes > most_bytes_) {
    kept_.erase(key);
    return;
  }
  bytes_ += entry.bytes;
  Shrink();
}

// Whoever fails gives its entry back under the lock, so the last one finds it with no owner left.
void ShapeCache::Leave(const Key& key, std::shared_ptr<Entry> entry) {
  const std::lock_guard lock(mutex_);
  entry.reset();
  const auto kept = kept_.find(key);
  if (kept == kept_.end() || kept->second.use_count() > 1 || kept->second->bytes > 0) return;
  kept_.erase(kept);
}

void ShapeCache::Shrink() {
  while (bytes_ > most_bytes_) {
    // Those being made have no bytes to give.
    const auto age = [](const auto& kept) {
      return kept.second->bytes == 0 ? UINT64_MAX : kept.second->used;
    };
    const auto oldest = std::min_element(
        kept_.begin(), kept_.end(), [&](const auto& a, const auto& b) { return age(a) < age(b); });
    bytes_ -= oldest->second->bytes;
    kept_.erase(oldest);
  }
}

ShapeCache::Key ShapeKey(ShapeKind kind, size_t stage, std::span<const ImageSize> maps,
                         std::initializer_list<int32_t> more) {
  ShapeCache::Key key = {static_cast<int32_t>(kind), static_cast<int32_t>(stage)};
  key.insert(key.end(), more);
  for (const ImageSize map : maps) key.insert(key.end(), {map.height, map.width});
  return key;
}

}  // namespace longview::models
