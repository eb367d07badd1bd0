// Blocks of one size by id, counted by reference. Their memory (block_memory.h) is reserved at
// once, so that addresses never move.
//
// A block's *users* are sequences, its *keepers* entries of the prefix index. With users it is
// used, with keepers alone evictable, with neither idle: CacheBudget counts accordingly.
//
// Used under the lock of the budget's memory; contents may be read and written by any thread of
// who uses the block.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cache/block_memory.h"
#include "kernels/cache/cache_budget.h"

namespace longview::kernels {

// Blocks on a grid of slots: blocks[i] holds slots from (first + i) * 64 on.
struct BlockList {
  int64_t first = 0;
  std::vector<int32_t> blocks;

  int64_t end() const { return first + static_cast<int64_t>(blocks.size()); }
};

class BlockPool {
 public:
  // The parts of a block lie in separate areas (keys, values): part i of block b is
  // area(i) + b * part_bytes[i]. Ids stay below max_blocks. `memory` outlives the pool; null: the
  // host's. Null: it has no room.
  // REQUIRES: parts of the host's memory are multiples of kPage bytes, or 0.
  static std::unique_ptr<BlockPool> Create(std::array<size_t, 2> part_bytes, int32_t max_blocks,
                                           CacheBudget* budget, BlockMemory* memory = nullptr);
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  static constexpr size_t kPage = HostBlockMemory::kPage;

  int64_t block_bytes() const { return static_cast<int64_t>(part_bytes_[0] + part_bytes_[1]); }
  std::byte* area(int part) const { return areas_[part]; }
  std::byte* part(int part, int32_t block) const {
    return areas_[part] + static_cast<size_t>(block) * part_bytes_[part];
  }

  // A block with one user, holding whatever its last owner left. -1: no room.
  int32_t Take();
  void AddUser(int32_t block);
  void DropUser(int32_t block);
  void AddKeeper(int32_t block);
  void DropKeeper(int32_t block);
  int users(int32_t block) const { return blocks_[block].users; }
  int keepers(int32_t block) const { return blocks_[block].keepers; }
  // May its one user write into it?
  bool exclusive(int32_t block) const { return users(block) == 1 && keepers(block) == 0; }

  // Slots that were written, by whichever user.
  int filled(int32_t block) const { return blocks_[block].filled; }
  void set_filled(int32_t block, int slots) { blocks_[block].filled = slots; }

  // Copies all of a block.
  void Copy(int32_t from, int32_t to);

  int64_t idle_blocks() const { return static_cast<int64_t>(idle_.size()); }
  // Gives back the memory of idle blocks, at least `bytes` if there is that much. Returns how much.
  int64_t ReleaseIdle(int64_t bytes);

 private:
  struct Block {
    int32_t users = 0;
    int32_t keepers = 0;
    int32_t filled = 0;
  };

  BlockPool(std::array<size_t, 2> part_bytes, int32_t max_blocks, CacheBudget* budget,
            BlockMemory* memory);
  size_t AreaBytes(int part) const { return part_bytes_[part] * static_cast<size_t>(max_blocks_); }
  void Freed(int32_t block);
  // Is there an id whose block has no memory?
  bool HasId() const {
    return !released_.empty() || static_cast<int32_t>(blocks_.size()) < max_blocks_;
  }

  const std::array<size_t, 2> part_bytes_;
  const int32_t max_blocks_;
  CacheBudget* budget_;
  HostBlockMemory host_;
  BlockMemory* const memory_;
  std::array<std::byte*, 2> areas_ = {};
  std::vector<Block> blocks_;      // Every id that was ever taken.
  std::vector<int32_t> idle_;      // With memory; the last one freed is taken first.
  std::vector<int32_t> released_;  // Without memory.
};

}  // namespace longview::kernels
