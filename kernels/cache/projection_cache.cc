#include "kernels/cache/projection_cache.h"

#include <algorithm>
#include <utility>

#include "kernels/base/check.h"
#include "kernels/cache/cache_step.h"

namespace longview::kernels {
namespace {

// Block ids times layers are what tables hold.
int32_t MostBlocks(const CacheShape& shape, int64_t bytes) {
  return static_cast<int32_t>(
      std::min<int64_t>(bytes / shape.BlockBytes(), INT32_MAX / shape.layers));
}

// Each owner of a state has a block of its own, and its bytes are counted too.
int32_t MostStates(const CacheShape& shape, int64_t bytes) {
  if (shape.StateBytes() == 0) return 0;
  const int64_t states = std::max<int64_t>(1, bytes / shape.StateBytes());
  return static_cast<int32_t>(std::min<int64_t>(states, MostBlocks(shape, bytes)));
}

int64_t Headroom(const CacheShape& shape, const ProjectionCache::Options& options) {
  return shape.StepBytes(options.step_tokens, options.step_sequences);
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
  const size_t heads = static_cast<size_t>(shape.layers) * shape.kv_heads;
  std::unique_ptr<ProjectionCache> cache(new ProjectionCache(shape, options, budget));
  const int64_t bytes = budget->capacity() + cache->headroom_;
  cache->rows_ = BlockPool::Create({heads * shape.KeyBytes(), heads * shape.ValueBytes()},
                                   MostBlocks(shape, bytes), budget, options.memory);
  if (cache->rows_ == nullptr) return nullptr;
  if (shape.StateBytes() > 0) {
    cache->states_ = BlockPool::Create({static_cast<size_t>(shape.StateBytes()), 0},
                                       MostStates(shape, bytes), budget, options.memory);
    if (cache->states_ == nullptr) return nullptr;
  }
  cache->index_ = std::make_unique<PrefixIndex>(
      shape.prefill_alignment(), options.salt, options.hash,
      std::vector<BlockPool*>(shape.strips.size(), cache->rows_.get()), budget);
  const auto lock = budget->Lock();
  budget->Join(cache.get());
  budget->AddHeadroom(cache->headroom_);
  return cache;
}

int64_t ProjectionCache::MemoryBytes(const CacheShape& shape, const Options& options,
                                     int64_t capacity) {
  const int64_t bytes = capacity + Headroom(shape, options);
  return MostBlocks(shape, bytes) * shape.BlockBytes() +
         MostStates(shape, bytes) * shape.StateBytes();
}

ProjectionCache::ProjectionCache(const CacheShape& shape, const Options& options,
                                 CacheBudget* budget)
    : shape_(shape),
      layout_(shape.layout()),
      budget_(budget),
      memory_(options.memory),
      headroom_(Headroom(shape, options)) {}

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
  states_.reset();
  rows_.reset();
  budget_->AddHeadroom(-headroom_);
}

bool ProjectionCache::HasIdle() const {
  return rows_->idle_blocks() > 0 || (states_ != nullptr && states_->idle_blocks() > 0);
}

void ProjectionCache::ReleaseIdle(int64_t bytes) {
  bytes -= rows_->ReleaseIdle(bytes);
  if (bytes > 0 && states_ != nullptr) states_->ReleaseIdle(bytes);
}

uint64_t ProjectionCache::OldestEvictable() const { return index_->OldestEvictable(); }

void ProjectionCache::EvictOldest() {
  index_->EvictOldest();
  AddTo(&evictions_, 1);
}

int64_t ProjectionCache::Find(std::span<const int32_t> prompt, Reuse reuse, uint64_t space) const {
  const auto lock = budget_->Lock();
  const auto limit = static_cast<int64_t>(prompt.size()) - 1;
  const PrefixIndex::Entry* entry = index_->Find(space, prompt, limit, reuse);
  return entry == nullptr ? 0 : entry->tokens();
}

CacheSequence ProjectionCache::Open(std::span<const int32_t> prompt, Reuse reuse, uint64_t space) {
  CacheSequence sequence(this);
  if (prompt.empty()) return sequence;
  AddTo(&lookups_, 1);
  const auto lock = budget_->Lock();
  const PrefixIndex::Entry* entry =
      index_->Find(space, prompt, static_cast<int64_t>(prompt.size()) - 1, reuse);
  if (entry == nullptr) return sequence;
  for (const BlockList& strip : entry->strips) {
    for (int32_t block : strip.blocks) rows_->AddUser(block);
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
  return PagedSource(strip, layer, table.blocks.data(), table.offsets.data());
}

Source ProjectionCache::PagedSource(int strip, int layer, const int32_t* blocks,
                                    const int32_t* offsets) const {
  KERNEL_CHECK(HasStrip(strip));
  Source source;
  source.k = rows_->area(0) + KeyOffset(layer, 0);
  source.v = rows_->area(1) + ValueOffset(layer, 0);
  source.dtype = layout_.dtype();
  source.layout = Layout::kPaged;
  source.kv_heads = layout_.kv_heads();
  source.block_table = blocks;
  source.seq_offset = offsets;
  return source;
}

void ProjectionCache::Write(int strip, int layer, std::span<const CachePlace> places,
                            const Rows& rows, const ParallelFor& pool) const {
  KERNEL_CHECK(OnHost() && HasStrip(strip));
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
        std::byte* to_k = KeyBlock(layer, block, head);
        std::byte* to_v = ValueBlock(layer, block, head);
        // A new block that stays partly empty: attention multiplies empty slots by a weight of 0,
        // so they must hold numbers.
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

std::byte* ProjectionCache::StateAddress(const CacheSequence& sequence, int layer) const {
  KERNEL_CHECK(sequence.state_ >= 0);
  const size_t bytes = AlignUp(PoolStateBytes(shape_.pool_columns, shape_.pool_widths));
  return states_->part(0, sequence.state_) + layer * bytes;
}

PoolState ProjectionCache::State(const CacheSequence& sequence, int layer) const {
  KERNEL_CHECK(OnHost());
  return CarvePoolState(StateAddress(sequence, layer), shape_.pool_columns, shape_.pool_widths);
}

void ProjectionCache::ReadRow(const CacheSequence& sequence, int strip, int layer, int64_t slot,
                              int head, float* k, float* v) const {
  KERNEL_CHECK(OnHost());
  const BlockList& list = sequence.strips_[strip];
  KERNEL_CHECK(slot >= list.first * kBlockSlots && slot < list.end() * kBlockSlots);
  const int32_t block = list.blocks[slot / kBlockSlots - list.first];
  const int in_block = static_cast<int>(slot % kBlockSlots);
  const std::byte* from_k = KeyBlock(layer, block, head);
  const std::byte* from_v = ValueBlock(layer, block, head);
  for (int d = 0; d < shape_.Dk; ++d) k[d] = layout_.ReadK(from_k, in_block, d);
  for (int d = 0; d < shape_.Dv; ++d) v[d] = layout_.ReadV(from_v, in_block, d);
}

void ProjectionCache::ReadKeys(int layer, const CachePlace& place, float* keys) const {
  KERNEL_CHECK(OnHost());
  for (int head = 0; head < shape_.kv_heads; ++head) {
    const std::byte* from = KeyBlock(layer, place.block, head);
    for (int d = 0; d < shape_.Dk; ++d) *keys++ = layout_.ReadK(from, place.slot, d);
  }
}

ProjectionCache::Stats ProjectionCache::stats() const {
  return {lookups_.load(std::memory_order_relaxed), hits_.load(std::memory_order_relaxed),
          hit_tokens_.load(std::memory_order_relaxed), evictions_.load(std::memory_order_relaxed)};
}

bool ProjectionCache::OwnState(CacheSequence* sequence) {
  if (shape_.StateBytes() == 0) return true;
  BlockPool* pool = states_.get();
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
  // A device's kernels begin sums from nothing (PoolRun::begins) instead of reading a reset state.
  if (!OnHost()) return true;
  for (int layer = 0; layer < shape_.layers; ++layer) {
    ResetPoolState(State(*sequence, layer), shape_.pool_columns, shape_.pool_widths);
  }
  return true;
}

bool ProjectionCache::OwnBlock(int filled, int32_t* block) {
  BlockPool* pool = rows_.get();
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
    ClearTail(*block, filled);
    pool->set_filled(*block, filled);
  }
  return true;
}

void ProjectionCache::ClearTail(int32_t block, int from) {
  // A device's kernels read no slot that no row sees.
  if (!OnHost()) return;
  const float zeros[kMaxHeadDim] = {};
  for (int layer = 0; layer < shape_.layers; ++layer) {
    for (int head = 0; head < layout_.kv_heads(); ++head) {
      for (int slot = from; slot < rows_->filled(block); ++slot) {
        layout_.WriteK(KeyBlock(layer, block, head), slot, zeros, DType::kFloat32);
        layout_.WriteV(ValueBlock(layer, block, head), slot, zeros, DType::kFloat32);
      }
    }
  }
}

}  // namespace longview::kernels
