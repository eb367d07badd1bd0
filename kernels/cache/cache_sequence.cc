#include <algorithm>
#include <utility>

#include "kernels/cache/projection_cache.h"

namespace longview::kernels {

CacheSequence::CacheSequence(ProjectionCache* cache)
    : cache_(cache), strips_(cache->shape_.strips.size()) {}

CacheSequence& CacheSequence::operator=(CacheSequence&& other) noexcept {
  if (this == &other) return *this;
  Clear();
  cache_ = std::exchange(other.cache_, nullptr);
  strips_ = std::move(other.strips_);
  state_ = std::exchange(other.state_, -1);
  ids_ = std::move(other.ids_);
  prefilled_ = std::exchange(other.prefilled_, 0);
  other.strips_.clear();
  other.ids_.clear();
  return *this;
}

void CacheSequence::Clear() {
  if (cache_ == nullptr) return;
  const auto lock = cache_->budget_->Lock();
  for (const BlockList& strip : strips_) {
    for (int32_t block : strip.blocks) cache_->rows_->DropUser(block);
  }
  if (state_ >= 0) cache_->states_->DropUser(state_);
  strips_.clear();
  ids_.clear();
  state_ = -1;
}

CacheSequence CacheSequence::Fork() const {
  CacheSequence fork(cache_);
  const auto lock = cache_->budget_->Lock();
  fork.strips_ = strips_;
  fork.state_ = state_;
  fork.ids_ = ids_;
  fork.prefilled_ = prefilled_;
  for (const BlockList& strip : strips_) {
    for (int32_t block : strip.blocks) cache_->rows_->AddUser(block);
  }
  if (state_ >= 0) cache_->states_->AddUser(state_);
  return fork;
}

void CacheSequence::CachePrefix(uint64_t space) {
  const auto lock = cache_->budget_->Lock();
  const int64_t alignment = cache_->shape_.prefill_alignment();
  const int64_t last = tokens() / alignment * alignment;
  if (last == tokens()) CachePrefixAt(space, last - alignment);
  CachePrefixAt(space, last);
}

void CacheSequence::CachePrefixAt(uint64_t space, int64_t point) {
  if (point <= 0) return;
  std::vector<BlockList> kept(strips_.size());
  for (size_t i = 0; i < strips_.size(); ++i) {
    const CacheShape& shape = cache_->shape_;
    const int64_t first = shape.FirstSlotAt(static_cast<int>(i), point) / kBlockSlots;
    const int64_t end = (shape.Slots(static_cast<int>(i), point) + kBlockSlots - 1) / kBlockSlots;
    if (first < strips_[i].first) return;
    const auto from = strips_[i].blocks.begin() - strips_[i].first;
    kept[i] = {first, {from + first, from + end}};
  }
  const Made made = point <= prefilled_ ? Made::kPrefill : Made::kDecode;
  cache_->index_->Insert(space, std::span(ids_).first(point), std::move(kept), made);
}

}  // namespace longview::kernels
