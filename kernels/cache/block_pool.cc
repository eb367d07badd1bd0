#include "kernels/cache/block_pool.h"

#include <algorithm>

#include "kernels/base/check.h"

namespace longview::kernels {

std::unique_ptr<BlockPool> BlockPool::Create(std::array<size_t, 2> part_bytes, int32_t max_blocks,
                                             CacheBudget* budget, BlockMemory* memory) {
  std::unique_ptr<BlockPool> pool(new BlockPool(part_bytes, max_blocks, budget, memory));
  for (int i = 0; i < 2; ++i) {
    if (pool->AreaBytes(i) == 0) continue;
    pool->areas_[i] = pool->memory_->Reserve(pool->AreaBytes(i));
    if (pool->areas_[i] == nullptr) return nullptr;
  }
  return pool;
}

BlockPool::BlockPool(std::array<size_t, 2> part_bytes, int32_t max_blocks, CacheBudget* budget,
                     BlockMemory* memory)
    : part_bytes_(part_bytes),
      max_blocks_(max_blocks),
      budget_(budget),
      memory_(memory == nullptr ? &host_ : memory) {}

BlockPool::~BlockPool() {
  for (const Block& block : blocks_) KERNEL_CHECK(block.users == 0 && block.keepers == 0);
  budget_->AddIdle(-block_bytes() * static_cast<int64_t>(idle_.size()));
  for (int i = 0; i < 2; ++i) {
    if (areas_[i] != nullptr) memory_->Return(areas_[i], AreaBytes(i));
  }
}

int32_t BlockPool::Take() {
  // Eviction may free a block of this pool, which is better than new memory.
  while (idle_.empty() && !(HasId() && budget_->HasRoom(block_bytes()))) {
    const bool released = HasId() && budget_->ReleaseIdle(block_bytes());
    if (released || budget_->EvictOldest()) continue;
    if (HasId() && budget_->HasHeadroom(block_bytes())) break;
    return -1;
  }
  int32_t block;
  if (!idle_.empty()) {
    block = idle_.back();
    idle_.pop_back();
    budget_->AddIdle(-block_bytes());
  } else if (!released_.empty()) {
    block = released_.back();
    released_.pop_back();
  } else {
    block = static_cast<int32_t>(blocks_.size());
    blocks_.emplace_back();
  }
  blocks_[block] = {1, 0, 0};
  budget_->AddUsed(block_bytes());
  return block;
}

void BlockPool::AddUser(int32_t block) {
  Block& of = blocks_[block];
  KERNEL_CHECK(of.users > 0 || of.keepers > 0);
  if (of.users++ > 0) return;
  budget_->AddEvictable(-block_bytes());
  budget_->AddUsed(block_bytes());
}

void BlockPool::DropUser(int32_t block) {
  Block& of = blocks_[block];
  KERNEL_CHECK(of.users > 0);
  if (--of.users > 0) return;
  budget_->AddUsed(-block_bytes());
  if (of.keepers > 0) {
    budget_->AddEvictable(block_bytes());
  } else {
    Freed(block);
  }
}

void BlockPool::AddKeeper(int32_t block) {
  KERNEL_CHECK(blocks_[block].users > 0);
  ++blocks_[block].keepers;
}

void BlockPool::DropKeeper(int32_t block) {
  Block& of = blocks_[block];
  KERNEL_CHECK(of.keepers > 0);
  if (--of.keepers > 0 || of.users > 0) return;
  budget_->AddEvictable(-block_bytes());
  Freed(block);
}

void BlockPool::Freed(int32_t block) {
  idle_.push_back(block);
  budget_->AddIdle(block_bytes());
}

void BlockPool::Copy(int32_t from, int32_t to) {
  for (int i = 0; i < 2; ++i) {
    if (part_bytes_[i] > 0) memory_->Copy(part(i, to), part(i, from), part_bytes_[i]);
  }
}

int64_t BlockPool::ReleaseIdle(int64_t bytes) {
  int64_t done = 0;
  while (done < bytes && !idle_.empty()) {
    const int32_t block = idle_.back();
    idle_.pop_back();
    released_.push_back(block);
    for (int i = 0; i < 2; ++i) {
      if (part_bytes_[i] > 0) memory_->Release(part(i, block), part_bytes_[i]);
    }
    done += block_bytes();
  }
  budget_->AddIdle(-done);
  return done;
}

}  // namespace longview::kernels
