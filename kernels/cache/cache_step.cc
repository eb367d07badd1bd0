#include "kernels/cache/cache_step.h"

#include <algorithm>
#include <utility>

#include "kernels/base/check.h"

namespace longview::kernels {

CacheStep::CacheStep(ProjectionCache* cache) : cache_(cache) {
  for (std::vector<Part>& parts : parts_) parts.resize(cache->shape().strips.size());
  End();
}

bool CacheStep::Append(Group group, CacheSequence* sequence, std::span<const int32_t> ids) {
  KERNEL_CHECK(sequence->cache_ == cache_ && !ids.empty());
  const auto lock = cache_->budget_->Lock();
  const int64_t before = sequence->tokens();
  const int64_t after = before + static_cast<int64_t>(ids.size());
  if (group != kPrefill) {
    KERNEL_CHECK(!prefilling_ && before / kBlockSlots == (after - 1) / kBlockSlots);
    KERNEL_CHECK(group == kResume || ids.size() == 1);
  } else {
    KERNEL_CHECK(before % kBlockSlots == 0);
    prefilling_ = true;
    before_ = sequence->strips_[0];
  }
  if (!cache_->OwnState(sequence)) return false;
  const int strips = static_cast<int>(sequence->strips_.size());
  for (int i = 0; i < strips; ++i) {
    if (!Extend(group, sequence, i, after)) return false;
  }
  for (int i = 0; i < strips; ++i) {
    Part& part = parts_[group][i];
    const BlockList& list = sequence->strips_[i];
    cache_->AddList(group == kPrefill && i == 0 ? before_ : list, &part.table);
    AddPlaces(list, cache_->shape().Slots(i, before), cache_->shape().Slots(i, after),
              &part.places);
  }
  if (group != kDecode && sequence->prefilled_ == before) sequence->prefilled_ = after;
  sequence->ids_.insert(sequence->ids_.end(), ids.begin(), ids.end());
  return true;
}

bool CacheStep::Extend(Group group, CacheSequence* sequence, int strip, int64_t tokens) {
  const CacheShape& shape = cache_->shape();
  const int64_t filled = shape.Slots(strip, sequence->tokens());
  const int64_t slots = shape.Slots(strip, tokens);
  BlockPool* pool = cache_->rows_.get();
  BlockList& list = sequence->strips_[strip];
  const int open = static_cast<int>(filled % kBlockSlots);
  if (slots == filled) {
    // Attention multiplies slots after the end by zero, so they must be this sequence's own.
    const bool foreign = open > 0 && pool->filled(list.blocks.back()) > open;
    return !foreign || cache_->OwnBlock(open, &list.blocks.back());
  }
  const int64_t end = (slots + kBlockSlots - 1) / kBlockSlots;
  const int64_t first = std::max(list.first, end - shape.Blocks(strip, tokens));
  const int64_t dropped = std::min(first, list.end()) - list.first;
  for (int64_t i = 0; i < dropped; ++i) {
    const int32_t block = list.blocks[i];
    // A prefill chunk attends to the window as it was before the chunk: a block that it drops stays
    // pinned until End, or until TakeBlock gives it out.
    if (group == kPrefill && strip == 0 && std::ranges::count(pinned_, block) == 0) {
      pinned_.push_back(block);
    } else {
      pool->DropUser(block);
    }
  }
  list.blocks.erase(list.blocks.begin(), list.blocks.begin() + dropped);
  list.first = first;
  // Copy on write: a fork or a cached prefix may hold the open block too.
  if (open > 0 && !list.blocks.empty() && !cache_->OwnBlock(open, &list.blocks.back())) {
    return false;
  }
  while (list.end() < end) {
    const int32_t block = TakeBlock(group, strip);
    if (block < 0) return false;
    list.blocks.push_back(block);
    pool->set_filled(block, kBlockSlots);
  }
  pool->set_filled(list.blocks.back(), static_cast<int>((slots - 1) % kBlockSlots) + 1);
  return true;
}

int32_t CacheStep::TakeBlock(Group group, int strip) {
  BlockPool* pool = cache_->rows_.get();
  if (group == kPrefill && strip == 0) {
    // All attention of prefill comes before its window rows are written, so a pinned block may be
    // written in the same step.
    const auto own =
        std::ranges::find_if(pinned_, [pool](int32_t block) { return pool->exclusive(block); });
    if (own != pinned_.end()) {
      const int32_t block = *own;
      pinned_.erase(own);
      return block;
    }
  }
  return pool->Take();
}

void CacheStep::AddPlaces(const BlockList& list, int64_t before, int64_t after,
                          std::vector<CachePlace>* places) const {
  for (int64_t slot = before; slot < after; ++slot) {
    const int64_t at = slot / kBlockSlots - list.first;
    if (at < 0) {
      places->push_back({-1, 0});
    } else {
      places->push_back({list.blocks[at], static_cast<int32_t>(slot % kBlockSlots)});
    }
  }
}

void CacheStep::End() {
  if (!pinned_.empty()) {
    const auto lock = cache_->budget_->Lock();
    for (int32_t block : pinned_) cache_->rows_->DropUser(block);
    pinned_.clear();
  }
  prefilling_ = false;
  for (std::vector<Part>& parts : parts_) {
    for (Part& part : parts) {
      part.table.blocks.clear();
      part.table.offsets.assign(1, 0);
      part.table.first_block.clear();
      part.places.clear();
    }
  }
}

}  // namespace longview::kernels
