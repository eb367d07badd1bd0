// Finds prefixes read before by their content. An entry is a point of some text, at a multiple of
// the cache's prefill alignment: the token ids up to it, the blocks a sequence needs to go on from
// it, and how they were made. Blocks are immutable while kept; an entry keeps them from being freed
// as long as memory is not needed elsewhere.
//
// An entry belongs to a *space*: whoever asks in another one finds nothing of it, however equal the
// ids are.
//
// Found by a chained hash of the ids; space and ids are always compared, so a collision costs time
// and nothing else. Beside its blocks an entry holds 4 bytes per token, which count as evictable.
//
// Used under the lock of the budget's memory.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "kernels/cache/block_pool.h"

namespace longview::kernels {

// Prefill and decode agree within rounding, not in bits.
enum class Made : bool { kPrefill = false, kDecode = true };

// Entries a lookup accepts: those made by prefill, whose bits reading again would give, or any.
enum class Reuse : bool { kPrefillMade = false, kAny = true };

// Hash of the ids, chained from the hash of what came before them.
using PrefixHash = uint64_t (*)(uint64_t before, std::span<const int32_t> ids);
uint64_t HashTokens(uint64_t before, std::span<const int32_t> ids);

class PrefixIndex {
 public:
  struct Entry {
    std::vector<int32_t> ids;
    std::vector<BlockList> strips;
    Made made = Made::kPrefill;
    uint64_t found = 0;  // CacheBudget::Tick of the last time.
    uint64_t key = 0;
    uint64_t space = 0;
    int64_t bytes = 0;  // Bytes of the entry beside its blocks.

    int64_t tokens() const { return static_cast<int64_t>(ids.size()); }
  };

  // `pools`: one per strip of an entry. Borrowed.
  PrefixIndex(int32_t alignment, uint64_t salt, PrefixHash hash, std::vector<BlockPool*> pools,
              CacheBudget* budget);
  ~PrefixIndex();
  PrefixIndex(const PrefixIndex&) = delete;
  PrefixIndex& operator=(const PrefixIndex&) = delete;

  // The longest entry of `space` that `prompt` begins with, of at most `limit` tokens; null: none.
  const Entry* Find(uint64_t space, std::span<const int32_t> prompt, int64_t limit,
                    Reuse reuse) const;

  // Counts an entry as found now.
  void Touch(const Entry* entry);

  // Keeps the blocks of a new entry. One made by decoding gives way to one made by prefill; any
  // other entry of the space for the same ids stays and counts as found. Nothing is kept where
  // sequences leave no room for it.
  void Insert(uint64_t space, std::span<const int32_t> ids, std::vector<BlockList> strips,
              Made made);

  // Use time of the oldest entry that has an evictable block, else of the oldest one, which is
  // evictable but for its blocks; CacheBudget::kNever if there is none.
  uint64_t OldestEvictable() const;
  void EvictOldest();

  void Clear();

  int64_t size() const { return static_cast<int64_t>(entries_.size()); }

 private:
  using Entries = std::list<Entry>;  // Least recently found first.

  uint64_t FirstKey(uint64_t space) const;
  uint64_t KeyOf(uint64_t space, std::span<const int32_t> ids) const;
  Entries::const_iterator Lookup(uint64_t key, uint64_t space, std::span<const int32_t> ids) const;
  Entries::const_iterator Oldest() const;
  void Drop(Entries::const_iterator entry);

  const int32_t alignment_;
  const uint64_t salt_;
  const PrefixHash hash_;
  const std::vector<BlockPool*> pools_;
  CacheBudget* budget_;
  Entries entries_;
  std::unordered_multimap<uint64_t, Entries::iterator> by_key_;
};

}  // namespace longview::kernels
