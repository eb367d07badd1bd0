#include "kernels/cache/prefix_index.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

namespace longview::kernels {
namespace {

// The bytes of a list's node and a table's, and of what the entry's arrays hold.
int64_t BytesOf(std::span<const int32_t> ids, std::span<const BlockList> strips) {
  constexpr size_t kNodes = 4 * sizeof(void*);
  size_t bytes = kNodes + sizeof(PrefixIndex::Entry) + sizeof(std::pair<uint64_t, void*>) +
                 ids.size_bytes() + strips.size_bytes();
  for (const BlockList& strip : strips) bytes += strip.blocks.size() * sizeof(int32_t);
  return static_cast<int64_t>(bytes);
}

}  // namespace

uint64_t HashTokens(uint64_t before, std::span<const int32_t> ids) {
  const std::string_view bytes(reinterpret_cast<const char*>(ids.data()), ids.size_bytes());
  // An odd factor keeps every bit of what came before.
  return before * 0x9E3779B97F4A7C15u + std::hash<std::string_view>()(bytes);
}

PrefixIndex::PrefixIndex(int32_t alignment, uint64_t salt, PrefixHash hash,
                         std::vector<BlockPool*> pools, CacheBudget* budget)
    : alignment_(alignment), salt_(salt), hash_(hash), pools_(std::move(pools)), budget_(budget) {}

PrefixIndex::~PrefixIndex() { Clear(); }

void PrefixIndex::Clear() {
  while (!entries_.empty()) Drop(entries_.begin());
}

// Different spaces begin their chains differently, so that equal texts of many spaces share no
// bucket.
uint64_t PrefixIndex::FirstKey(uint64_t space) const { return salt_ + space * 0x9E3779B97F4A7C15u; }

const PrefixIndex::Entry* PrefixIndex::Find(uint64_t space, std::span<const int32_t> prompt,
                                            int64_t limit, Reuse reuse) const {
  const Entry* longest = nullptr;
  uint64_t key = FirstKey(space);
  const int64_t end = std::min<int64_t>(limit, static_cast<int64_t>(prompt.size()));
  // Lengths of entries are multiples of the alignment, and each hash goes on from the one before.
  for (int64_t at = alignment_; at <= end; at += alignment_) {
    key = hash_(key, prompt.subspan(at - alignment_, alignment_));
    const auto found = Lookup(key, space, prompt.first(at));
    if (found == entries_.end()) continue;
    if (found->made == Made::kDecode && reuse == Reuse::kPrefillMade) continue;
    longest = &*found;
  }
  return longest;
}

uint64_t PrefixIndex::KeyOf(uint64_t space, std::span<const int32_t> ids) const {
  uint64_t key = FirstKey(space);
  for (size_t at = 0; at < ids.size(); at += alignment_) {
    key = hash_(key, ids.subspan(at, alignment_));
  }
  return key;
}

PrefixIndex::Entries::const_iterator PrefixIndex::Lookup(uint64_t key, uint64_t space,
                                                         std::span<const int32_t> ids) const {
  const auto [first, last] = by_key_.equal_range(key);
  for (auto it = first; it != last; ++it) {
    if (it->second->space == space && std::ranges::equal(it->second->ids, ids)) return it->second;
  }
  return entries_.end();
}

void PrefixIndex::Touch(const Entry* entry) {
  const auto [first, last] = by_key_.equal_range(entry->key);
  for (auto it = first; it != last; ++it) {
    if (&*it->second != entry) continue;
    it->second->found = budget_->Tick();
    entries_.splice(entries_.end(), entries_, it->second);
    return;
  }
}

void PrefixIndex::Insert(uint64_t space, std::span<const int32_t> ids,
                         std::vector<BlockList> strips, Made made) {
  const uint64_t key = KeyOf(space, ids);
  const auto old = Lookup(key, space, ids);
  if (old != entries_.end()) {
    // Only an entry made by prefill replaces one made by decode, whose bits are not those of
    // reading the prompt again.
    if (made == Made::kDecode || old->made == Made::kPrefill) {
      Touch(&*old);
      return;
    }
    Drop(old);
  }
  const int64_t bytes = BytesOf(ids, strips);
  if (!budget_->MakeRoom(bytes)) return;
  budget_->AddEvictable(bytes);
  for (size_t i = 0; i < strips.size(); ++i) {
    for (int32_t block : strips[i].blocks) pools_[i]->AddKeeper(block);
  }
  entries_.push_back(
      {{ids.begin(), ids.end()}, std::move(strips), made, budget_->Tick(), key, space, bytes});
  by_key_.emplace(key, std::prev(entries_.end()));
}

PrefixIndex::Entries::const_iterator PrefixIndex::Oldest() const {
  const auto oldest = std::ranges::find_if(entries_, [this](const Entry& entry) {
    for (size_t i = 0; i < entry.strips.size(); ++i) {
      for (int32_t block : entry.strips[i].blocks) {
        if (pools_[i]->users(block) == 0) return true;
      }
    }
    return false;
  });
  return oldest == entries_.end() ? entries_.begin() : oldest;
}

uint64_t PrefixIndex::OldestEvictable() const {
  const auto oldest = Oldest();
  return oldest == entries_.end() ? CacheBudget::kNever : oldest->found;
}

void PrefixIndex::EvictOldest() {
  const auto oldest = Oldest();
  if (oldest != entries_.end()) Drop(oldest);
}

void PrefixIndex::Drop(Entries::const_iterator entry) {
  for (size_t i = 0; i < entry->strips.size(); ++i) {
    for (int32_t block : entry->strips[i].blocks) pools_[i]->DropKeeper(block);
  }
  budget_->AddEvictable(-entry->bytes);
  const auto [first, last] = by_key_.equal_range(entry->key);
  for (auto it = first; it != last; ++it) {
    if (it->second != entry) continue;
    by_key_.erase(it);
    break;
  }
  entries_.erase(entry);
}

}  // namespace longview::kernels
