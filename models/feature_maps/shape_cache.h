// Things that follow from a model and a shape - of a map, of a band of maps - and are dear to make:
// plans of attention, biases expanded for a map, exact bytes. Images of equal shape share it within
// a batch and from batch to batch, and what Prepare made of a shape to tell its cost is there when
// the batch begins.
//
// The entries used last are kept, up to a number of bytes; a larger one is made for its caller and
// not kept. Thread-safe: of several threads that ask for the same entry, one makes it and the
// others wait. An entry that was handed out stays valid after it is evicted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "models/image/pipeline.h"

namespace longview::models {

// The bytes a kept value holds beside its own size; types with more to say bring an overload of
// their own.
template <class Element>
size_t BytesOf(const std::vector<Element>& elements) {
  size_t bytes = elements.capacity() * sizeof(Element);
  if constexpr (!std::is_arithmetic_v<Element>) {
    for (const Element& element : elements) bytes += BytesOf(element);
  }
  return bytes;
}

// Kinds of things that a model keeps by shape; each has a type of its own in a family.
enum class ShapeKind : int32_t {
  kPictureNeed,     // The need of an image that is alone.
  kTokenPlaces,     // Places of a map's tokens.
  kTokenPositions,  // Token at every place.
  kBandPlan,        // Attention of images that go through a block together.
  kSlicePlan,       // Attention of a slice of one image.
  kJoinedPlan,      // Attention of a band with its maps' tables in one.
  kMapWeights,      // Positions and biases of a map.
};

class ShapeCache {
 public:
  using Key = std::vector<int32_t>;  // All that the value follows from; see ShapeKey.

  static constexpr size_t kMostBytes = size_t{128} << 20;

  explicit ShapeCache(size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

  // make() if it is not there, called without the cache's lock: it may ask for other keys. What it
  // throws goes to this caller; the next one makes it again.
  template <class Value, class Make>
  std::shared_ptr<const Value> Of(const Key& key, Make&& make) {
    std::shared_ptr<Entry> entry = Use(key);
    try {
      absl::MutexLock lock(&entry->making);
      if (entry->value == nullptr) {
        auto made = std::make_shared<const Value>(make());
        entry->value = made;
        Count(key, *entry, sizeof(Value) + BytesOf(*made));
      }
      return std::static_pointer_cast<const Value>(entry->value);
    } catch (...) {
      Leave(key, std::move(entry));
      throw;
    }
  }

  // The bytes of all that is kept, with what it takes to find it again.
  size_t bytes() const;
  // Values that are kept or being made.
  size_t size() const;

 private:
  struct Entry;
  using Kept = std::map<Key, std::shared_ptr<Entry>>;
  using Order = std::list<Kept::iterator>;
  struct Entry {
    absl::Mutex making;  // Held by whoever makes the value; taken before the cache's.
    std::shared_ptr<const void> value ABSL_GUARDED_BY(making);
    // Guarded by the cache's mutex.
    size_t bytes = 0;  // With the key; 0: not made yet.
    Order::iterator place;
  };

  std::shared_ptr<Entry> Use(const Key& key);
  void Count(const Key& key, Entry& entry, size_t value_bytes);
  // Throws an entry out that nobody could make and nobody waits for any more.
  void Leave(const Key& key, std::shared_ptr<Entry> entry);
  void Shrink() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Erase(Kept::iterator kept) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t most_bytes_;
  mutable absl::Mutex mutex_;
  Kept kept_ ABSL_GUARDED_BY(mutex_);
  Order order_ ABSL_GUARDED_BY(mutex_);  // Least recently used first.
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Key of maps of these sizes, in this order, in a stage; `more`: what else decides, as often as the
// kind has it.
ShapeCache::Key ShapeKey(ShapeKind kind, size_t stage, std::span<const ImageSize> maps,
                         std::initializer_list<int32_t> more = {});

}  // namespace longview::models
