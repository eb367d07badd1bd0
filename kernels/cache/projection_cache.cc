#include "kernels/cache/projection_cache.h"

#include <algorithm>
#include <utility>

#include "kernels/base/check.h"
#include "kernels/cache/cache_step.h"

namespace longview::kernels {
namespace {

// Block ids times layers are what tables hold.
int32_t MostBlocks(int64_t capacity, int64_t block_bytes, int layers) {
  return static_cast<int32_t>(std::min<int64_t>(capacity / block_bytes, INT32_MAX / layers));
}

void AddTo(std::atomic<int64_t>* counter, int64_t n) {
  counter->fetch_add(n, std::memory_order_relaxed);
}

}  // namespace

std::unique_ptr<ProjectionCache> ProjectionCache::Create(const CacheShape& shape,
                                                         const Options& options,
                                                         CacheBudget* budget) {
  KERNEL_CHECK(shape.layers >= 1 && !shape.strips.empty());
  KERNEL_CHECK(shape.strips[0].segment == 1 && shape.strips[0].rank == 1);
  const KvLayout layout = shape.layout();
  const size_t heads = static_cast<size_t>(shape.layers) * shape.kv_heads;
  std::vector<std::array<size_t, 2>> parts(
      shape.strips.size(), {heads * layout.k_block_bytes(), heads * layout.v_block_bytes()});
  if (shape.StateBytes() > 0) parts.push_back({static_cast<size_t>(shape.StateBytes()), 0});
  std::unique_ptr<ProjectionCache> cache(new ProjectionCache(shape, options, budget));
  for (const std::array<size_t, 2>& of_block : parts) {
    const int32_t blocks =
        MostBlocks(budget->capacity() + cache->headroom_,
                   static_cast<int64_t>(of_block[0] + of_block[1]), shape.layers);
    auto pool = BlockPool::Create(of_block, blocks, budget);
    if (pool == nullptr) return nullptr;
    cache->pools_.push_back(std::move(pool));
  }
  std::vector<BlockPool*> pools;
  for (size_t i = 0; i < shape.strips.size(); ++i) pools.push_back(cache->pools_[i].get());
  cache->index_ = std::make_unique<PrefixIndex>(shape.granule(), options.salt, options.hash,
                                                std::move(pools), budget);
  const auto lock = budget->Lock();
  budget->Join(cache.get());
  budget->AddHeadroom(cache->headroom_);
  return cache;
}

ProjectionCache::ProjectionCache(const CacheShape& shape, const Options& options,
                                 CacheBudget* budget)
    : shape_(shape),
      layout_(shape.layout()),
      budget_(budget),
      headroom_(shape.StepBytes(options.step_tokens, options.step_sequences)) {}

ProjectionCache::~ProjectionCache() {
  if (index_ == nullptr) return;  // Never joined.
  // The system takes its time with gigabytes, and others wait for the lock: piece by piece.
  constexpr int64_t kPiece = int64_t{64} << 20;
  auto lock = budget_->Lock();
  index_->Clear();
  while (HasIdle()) {
    ReleaseIdle(kPiece);
    lock.unlock();
    lock.lock();
  }
  budget_->Leave(this);
  pools_.clear();
  budget_->AddHeadroom(-headroom_);
}

bool ProjectionCache::HasIdle() const {
  return std::ranges::any_of(pools_, [](const auto& pool) { return pool->idle_blocks() > 0; });
}

void ProjectionCache::ReleaseIdle(int64_t bytes) {
  for (const auto& pool : pools_) {
    if (bytes <= 0) return;
    bytes -= pool->ReleaseIdle(bytes);
  }
}

uint64_t ProjectionCache::OldestEvictable() const { return index_->OldestEvictable(); }

void ProjectionCache::EvictOldest() {
  index_->EvictOldest();
  AddTo(&evictions_, 1);
}

int64_t ProjectionCache::Find(std::span<const int32_t> prompt, Reuse reuse) const {
  const auto lock = budget_->Lock();
  const auto limit = static_cast<int64_t>(prompt.size()) - 1;
  const PrefixIndex::Entry* entry = index_->Find(prompt, limit, reuse);
  return entry == nullptr ? 0 : entry->tokens();
}

CacheSequence ProjectionCache::Open(std::span<const int32_t> prompt, Reuse reuse) {
  CacheSequence sequence(this);
  if (prompt.empty()) return sequence;
  AddTo(&lookups_, 1);
  const auto lock = budget_->Lock();
  const PrefixIndex::Entry* entry =
      index_->Find(prompt, static_cast<int64_t>(prompt.size()) - 1, reuse);
  if (entry == nullptr) return sequence;
  for (size_t i = 0; i < entry->strips.size(); ++i) {
    for (int32_t block : entry->strips[i].blocks) pools_[i]->AddUser(block);
  }
  sequence.strips_ = entry->strips;
  sequence.ids_ = entry->ids;
  sequence.prefilled_ = entry->made == Made::kPrefill ? entry->tokens() : 0;
  AddTo(&hits_, 1);
  AddTo(&hit_tokens_, entry->tokens());
  index_->Touch(entry);
  return sequence;
}

void ProjectionCache::AddList(const BlockList& list, CacheTable* table) const {
  // A block holds all layers of its keys, then all of its values; a source of one layer sees the
  // pool as if each layer were a block, and begins at its own.
  for (int32_t block : list.blocks) table->blocks.push_back(block * shape_.layers);
  table->offsets.push_back(static_cast<int32_t>(table->blocks.size()));
  table->first_block.push_back(static_cast<int32_t>(list.first));
}

void ProjectionCache::AddTable(const CacheSequence& sequence, int strip, CacheTable* table) const {
  KERNEL_CHECK(sequence.cache_ == this);
  AddList(sequence.strips_[strip], table);
}

Source ProjectionCache::PagedSource(int strip, int layer, const CacheTable& table) const {
  Source source;
  source.k = pools_[strip]->area(0) + layout_.KBlock(layer, 0);
  source.v = pools_[strip]->area(1) + layout_.VBlock(layer, 0);
  source.dtype = layout_.dtype();
  source.layout = Layout::kPaged;
  source.kv_heads = layout_.kv_heads();
  source.block_table = table.blocks.data();
  source.seq_offset = table.offsets.data();
  return source;
}

void ProjectionCache::Write(int strip, int layer, std::span<const CachePlace> places,
                            const Rows& rows, const ParallelFor& pool) const {
  const auto* k = static_cast<const std::byte*>(rows.k);
  const auto* v = static_cast<const std::byte*>(rows.v);
  const auto size = static_cast<int64_t>(SizeOf(rows.dtype));
  // A unit of work is one head of a run of places in one block: who clears a block is who writes
  // into it. The number of threads is asked for once: inside the region it may read as another.
  const int threads = pool.threads();
  RunOnThreads(pool, [&](int thread) {
    int64_t unit = 0;
    for (size_t begin = 0, end = 0; begin < places.size(); begin = end) {
      const int32_t block = places[begin].block;
      while (end < places.size() && places[end].block == block) ++end;
      if (block < 0) continue;
      for (int head = 0; head < layout_.kv_heads(); ++head) {
        if (unit++ % threads != thread) continue;
        std::byte* to_k = KeyBlock(strip, layer, block, head);
        std::byte* to_v = ValueBlock(strip, layer, block, head);
        if (places[begin].slot == 0 && end - begin < kBlockSlots) {
          layout_.ClearK(to_k);
          layout_.ClearV(to_v);
        }
        for (size_t i = begin; i < end; ++i) {
          const auto row = static_cast<int64_t>(i);
          const int slot = places[i].slot;
          layout_.WriteK(to_k, slot,
                         k + (row * rows.k_row_stride + head * rows.k_head_stride) * size,
                         rows.dtype);
          layout_.WriteV(to_v, slot,
                         v + (row * rows.v_row_stride + head * rows.v_head_stride) * size,
                         rows.dtype);
        }
      }
    }
  });
}

PoolState ProjectionCache::State(const CacheSequence& sequence, int layer) const {
  KERNEL_CHECK(sequence.state_ >= 0);
  const size_t bytes = AlignUp(PoolStateBytes(shape_.pool_columns, shape_.pool_widths));
  return CarvePoolState(state_pool()->part(0, sequence.state_) + layer * bytes, shape_.pool_columns,
                        shape_.pool_widths);
}

void ProjectionCache::ReadRow(const CacheSequence& sequence, int strip, int layer, int64_t slot,
                              int head, float* k, float* v) const {
  const BlockList& list = sequence.strips_[strip];
  KERNEL_CHECK(slot >= list.first * kBlockSlots && slot < list.end() * kBlockSlots);
  const int32_t block = list.blocks[slot / kBlockSlots - list.first];
  const int in_block = static_cast<int>(slot % kBlockSlots);
  const std::byte* from_k = KeyBlock(strip, layer, block, head);
  const std::byte* from_v = ValueBlock(strip, layer, block, head);
  for (int d = 0; d < shape_.Dk; ++d) k[d] = layout_.ReadK(from_k, in_block, d);
  for (int d = 0; d < shape_.Dv; ++d) v[d] = layout_.ReadV(from_v, in_block, d);
}

ProjectionCache::Stats ProjectionCache::stats() const {
  return {lookups_.load(std::memory_order_relaxed), hits_.load(std::memory_order_relaxed),
          hit_tokens_.load(std::memory_order_relaxed), evictions_.load(std::memory_order_relaxed)};
}

bool ProjectionCache::OwnState(CacheSequence* sequence) {
  if (shape_.StateBytes() == 0) return true;
  BlockPool* pool = state_pool();
  const int32_t old = sequence->state_;
  if (old >= 0 && pool->exclusive(old)) return true;
  const int32_t block = pool->Take();
  if (block < 0) return false;
  sequence->state_ = block;
  if (old >= 0) {
    pool->Copy(old, block);
    pool->DropUser(old);
    return true;
  }
  for (int layer = 0; layer < shape_.layers; ++layer) {
    ResetPoolState(State(*sequence, layer), shape_.pool_columns, shape_.pool_widths);
  }
  return true;
}

bool ProjectionCache::OwnBlock(int strip, int filled, int32_t* block) {
  BlockPool* pool = pools_[strip].get();
  if (!pool->exclusive(*block)) {
    const int32_t own = pool->Take();
    if (own < 0) return false;
    pool->Copy(*block, own);
    pool->set_filled(own, pool->filled(*block));
    pool->DropUser(*block);
    *block = own;
  }
  // Slots after a prefix are another sequence's.
  if (pool->filled(*block) > filled) {
    ClearTail(strip, *block, filled);
    pool->set_filled(*block, filled);
  }
  return true;
}

void ProjectionCache::ClearTail(int strip, int32_t block, int from) {
  const float zeros[kMaxHeadDim] = {};
  for (int layer = 0; layer < shape_.layers; ++layer) {
    for (int head = 0; head < layout_.kv_heads(); ++head) {
      for (int slot = from; slot < pools_[strip]->filled(block); ++slot) {
        layout_.WriteK(KeyBlock(strip, layer, block, head), slot, zeros, DType::kFloat32);
        layout_.WriteV(ValueBlock(strip, layer, block, head), slot, zeros, DType::kFloat32);
      }
    }
  }
}

}  // namespace longview::kernels
