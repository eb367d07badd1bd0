#include "models/feature_maps/shape_cache.h"

namespace longview::models {
namespace {

// Three pointers and a colour lie before what a tree keeps, two pointers before what a list does,
// and a table and two counts before what a shared_ptr was made with.
constexpr size_t kTreeNode = 4 * sizeof(void*);
constexpr size_t kListNode = 2 * sizeof(void*);
constexpr size_t kShared = 2 * sizeof(void*);

}  // namespace

size_t ShapeCache::bytes() const {
  absl::MutexLock lock(&mutex_);
  return bytes_;
}

size_t ShapeCache::size() const {
  absl::MutexLock lock(&mutex_);
  return kept_.size();
}

std::shared_ptr<ShapeCache::Entry> ShapeCache::Use(const Key& key) {
  absl::MutexLock lock(&mutex_);
  const auto found = kept_.find(key);
  if (found != kept_.end()) {
    order_.splice(order_.end(), order_, found->second->place);
    return found->second;
  }
  auto entry = std::make_shared<Entry>();
  entry->place = order_.insert(order_.end(), kept_.end());
  try {
    *entry->place = kept_.emplace(key, entry).first;
  } catch (...) {
    order_.erase(entry->place);
    throw;
  }
  return entry;
}

// A value larger than the cache would empty it and not stay.
void ShapeCache::Count(const Key& key, Entry& entry, size_t value_bytes) {
  absl::MutexLock lock(&mutex_);
  entry.bytes = kTreeNode + sizeof(Kept::value_type) + BytesOf(key) + kListNode +
                sizeof(Order::value_type) + kShared + sizeof(Entry) + kShared + value_bytes;
  bytes_ += entry.bytes;
  if (entry.bytes > most_bytes_) {
    Erase(*entry.place);
  } else {
    Shrink();
  }
}

void ShapeCache::Erase(Kept::iterator kept) {
  bytes_ -= kept->second->bytes;
  order_.erase(kept->second->place);
  kept_.erase(kept);
}

// Whoever fails gives its entry back under the lock, so the last one finds it with no owner left.
void ShapeCache::Leave(const Key& key, std::shared_ptr<Entry> entry) {
  absl::MutexLock lock(&mutex_);
  entry.reset();
  const auto kept = kept_.find(key);
  if (kept == kept_.end() || kept->second.use_count() > 1 || kept->second->bytes > 0) return;
  Erase(kept);
}

void ShapeCache::Shrink() {
  for (auto place = order_.begin(); bytes_ > most_bytes_ && place != order_.end();) {
    const Kept::iterator kept = *place++;
    // Entries still being made have no bytes to give.
    if (kept->second->bytes > 0) Erase(kept);
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
