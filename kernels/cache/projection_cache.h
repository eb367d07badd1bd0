// The KV cache of one generating model: windows of raw keys and values, projected pages of finished
// segments, sums of the open one. Blocks are counted by reference and valid in every layer: a fork
// copies lists and no keys, and who writes into a block that others hold (only ever the last,
// unfinished one) copies it first. A cached prefix is found again by its token ids and resumed
// without reading them anew.
//
// Tokens are appended through CacheStep (cache_step.h).
//
// Thread-compatible: used by the executor's thread, while other threads may use, make and destroy
// other caches of the same CacheMemory; CacheBudget's counters and stats() may be read from any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/cache/block_pool.h"
#include "kernels/cache/cache_budget.h"
#include "kernels/cache/cache_shape.h"
#include "kernels/cache/prefix_index.h"
#include "kernels/pool/segment_pool.h"
#include "kernels/span/executor.h"

namespace longview::kernels {

class ProjectionCache;
struct CachePlace;
struct CacheTable;

// The state of one sequence; destroying it gives its memory back. A moved-from one is empty.
// Must not outlive its cache.
class CacheSequence {
 public:
  CacheSequence() = default;
  explicit CacheSequence(ProjectionCache* cache);
  ~CacheSequence() { Clear(); }
  CacheSequence(CacheSequence&& other) noexcept { *this = std::move(other); }
  CacheSequence& operator=(CacheSequence&& other) noexcept;

  // Read so far, with what was found.
  int64_t tokens() const { return static_cast<int64_t>(ids_.size()); }
  std::span<const int32_t> ids() const { return ids_; }
  // Blocks of a strip: ids of the pool, not those of CacheTable.
  const BlockList& blocks(int strip) const { return strips_[strip]; }

  // A second sequence in the same state. Takes no memory of the budget until one of the two
  // appends. REQUIRES: not between its Append and the end of that step.
  CacheSequence Fork() const;

  // Keeps, evictable, what a prompt that begins like this one needs: at the last multiple of
  // prefill_alignment() tokens, and, where that is all of it, at the one before too (a prompt's
  // last token is always read anew). Points that are already kept count as found now. Only who
  // opens in the same `space` finds it (prefix_index.h).
  void CachePrefix(uint64_t space = 0);

 private:
  friend class ProjectionCache;
  friend class CacheStep;

  void Clear();
  void CachePrefixAt(uint64_t space, int64_t point);

  ProjectionCache* cache_ = nullptr;
  std::vector<BlockList> strips_;
  int32_t state_ = -1;  // Block of the state pool; -1: empty.
  std::vector<int32_t> ids_;
  int64_t prefilled_ = 0;  // The first tokens, made by prefill alone.
};

class ProjectionCache final : private CacheBudget::Member {
 public:
  // Rows to store. Row i of `k` begins at k + i * k_row_stride, head h at + h * k_head_stride;
  // strides in elements.
  struct Rows {
    const void* k = nullptr;  // [places, kv_heads, Dk]
    const void* v = nullptr;  // [places, kv_heads, Dv]
    DType dtype = DType::kFloat32;
    int64_t k_row_stride = 0, k_head_stride = 0;
    int64_t v_row_stride = 0, v_head_stride = 0;
  };

  struct Stats {
    int64_t lookups = 0;
    int64_t hits = 0;
    int64_t hit_tokens = 0;  // Tokens that need not be read.
    int64_t evictions = 0;
  };

  struct Options {
    // Stands for whatever else the keys depend on (weights, numerics): entries made under
    // different salts never meet.
    uint64_t salt = 0;
    int64_t step_tokens = 0;  // Limit of prefill in one step; see CacheShape::StepBytes.
    int step_sequences = 0;   // Limit of sequences in one step.
    PrefixHash hash = HashTokens;
    // Memory of the blocks, which outlives the cache; null: the host's. What the host cannot read,
    // it cannot write either: the calls below that do are for the host's memory and
    // BlockForm::kPanels, and a model that keeps its blocks elsewhere brings kernels of its own.
    BlockMemory* memory = nullptr;
  };

  // Null: the memory has no room for the budget's bytes (MemoryBytes). The budget outlives the
  // cache.
  static std::unique_ptr<ProjectionCache> Create(const CacheShape& shape, const Options& options,
                                                 CacheBudget* budget);
  // Bytes reserved in all for a budget of `capacity` bytes: blocks of rows for all of it and the
  // steps' headroom, and states for as many bytes, but no more than one per block, since each owner
  // of a state has a block of its own too.
  static int64_t MemoryBytes(const CacheShape& shape, const Options& options, int64_t capacity);
  ~ProjectionCache() override;  // REQUIRES: no sequence is left.
  ProjectionCache(const ProjectionCache&) = delete;
  ProjectionCache& operator=(const ProjectionCache&) = delete;

  const CacheShape& shape() const { return shape_; }
  const CacheBudget& budget() const { return *budget_; }

  // A sequence that has read the longest beginning of `prompt` cached in `space`, but never its
  // last token. With Reuse::kPrefillMade only what prefill made is found, whose bits are those of
  // reading it again. The hit's memory counts as used from here on.
  CacheSequence Open(std::span<const int32_t> prompt, Reuse reuse, uint64_t space = 0);

  // Tokens Open would find. Changes nothing.
  int64_t Find(std::span<const int32_t> prompt, Reuse reuse, uint64_t space = 0) const;

  // Adds a sequence's blocks to a table outside of any step: for attention to what it has read.
  void AddTable(const CacheSequence& sequence, int strip, CacheTable* table) const;

  // Keys and values of a strip in one layer, as blocks of `table` (borrowed).
  Source PagedSource(int strip, int layer, const CacheTable& table) const;
  // PagedSource by lists of blocks and of sequences' offsets into it, as Source has them.
  Source PagedSource(int strip, int layer, const int32_t* blocks, const int32_t* offsets) const;

  // Stores row i at places[i] of a strip in one layer. Rows of one block come in ascending slots.
  // A block begun here is zero-filled where no row is given. REQUIRES: the host's memory.
  void Write(int strip, int layer, std::span<const CachePlace> places, const Rows& rows,
             const ParallelFor& pool) const;

  // Reads the keys at a place of a layer back as float, heads side by side. REQUIRES: the host's
  // memory.
  void ReadKeys(int layer, const CachePlace& place, float* keys) const;

  // Sums of the open segment in one layer, [pool_columns] and [pool_columns, width]. Reset when
  // the sequence's first token was appended or a prefix was found; the model resets it after each
  // finished segment. Valid from the sequence's Append to the end of that step: a fork may copy it.
  // REQUIRES: the host's memory.
  PoolState State(const CacheSequence& sequence, int layer) const;

  // Address of State's sums, PoolStateBytes of them, in any memory. Elsewhere than on the host
  // nobody resets them: they are undefined wherever a segment begins.
  std::byte* StateAddress(const CacheSequence& sequence, int layer) const;

  // Reads one stored row back as float; for references and tests. REQUIRES: the slot is held, in
  // the host's memory.
  void ReadRow(const CacheSequence& sequence, int strip, int layer, int64_t slot, int head,
               float* k, float* v) const;

  Stats stats() const;

 private:
  friend class CacheSequence;
  friend class CacheStep;

  void AddList(const BlockList& list, CacheTable* table) const;

  ProjectionCache(const CacheShape& shape, const Options& options, CacheBudget* budget);

  // Bytes from an area's begin to a layer's and head's part of block 0.
  size_t KeyOffset(int layer, int head) const {
    return static_cast<size_t>(layer * shape_.kv_heads + head) * shape_.KeyBytes();
  }
  size_t ValueOffset(int layer, int head) const {
    return static_cast<size_t>(layer * shape_.kv_heads + head) * shape_.ValueBytes();
  }
  std::byte* KeyBlock(int layer, int32_t block, int head) const {
    return rows_->part(0, block) + KeyOffset(layer, head);
  }
  std::byte* ValueBlock(int layer, int32_t block, int head) const {
    return rows_->part(1, block) + ValueOffset(layer, head);
  }
  bool HasStrip(int strip) const {
    return strip >= 0 && strip < static_cast<int>(shape_.strips.size());
  }
  bool OnHost() const { return memory_ == nullptr && shape_.form == BlockForm::kPanels; }

  // Give `sequence` what only it writes into: its state; a block, of whose slots it has `filled`,
  // with zeros after them. False: no memory.
  bool OwnState(CacheSequence* sequence);
  bool OwnBlock(int filled, int32_t* block);
  void ClearTail(int32_t block, int from);

  bool HasIdle() const;
  void ReleaseIdle(int64_t bytes) override;
  uint64_t OldestEvictable() const override;
  void EvictOldest() override;

  CacheShape shape_;
  KvLayout layout_;
  CacheBudget* budget_;
  BlockMemory* const memory_;
  const int64_t headroom_;
  std::unique_ptr<BlockPool> rows_;    // Rows of all strips.
  std::unique_ptr<BlockPool> states_;  // Null: there are none.
  std::unique_ptr<PrefixIndex> index_;
  std::atomic<int64_t> lookups_{0};
  std::atomic<int64_t> hits_{0};
  std::atomic<int64_t> hit_tokens_{0};
  std::atomic<int64_t> evictions_{0};
};

}  // namespace longview::kernels
