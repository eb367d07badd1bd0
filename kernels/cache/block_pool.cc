#include "kernels/cache/block_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "kernels/base/check.h"

namespace longview::kernels {
namespace {

// Areas begin where a huge page may.
constexpr size_t kHugePage = size_t{2} << 20;

size_t AlignTo(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

std::unique_ptr<BlockPool> BlockPool::Create(std::array<size_t, 2> part_bytes, int32_t max_blocks,
                                             CacheBudget* budget) {
  std::unique_ptr<BlockPool> pool(new BlockPool(part_bytes, max_blocks, budget));
  std::array<size_t, 2> area_bytes;
  for (int i = 0; i < 2; ++i) {
    KERNEL_CHECK(part_bytes[i] % kPage == 0);
    area_bytes[i] = AlignTo(part_bytes[i] * max_blocks, kHugePage);
  }
  const size_t bytes = area_bytes[0] + area_bytes[1] + kHugePage;
  void* mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  pool->mapping_ = mapping;
  pool->mapping_bytes_ = bytes;
  const size_t start = AlignTo(reinterpret_cast<size_t>(mapping), kHugePage);
  pool->areas_ = {reinterpret_cast<std::byte*>(start),
                  reinterpret_cast<std::byte*>(start + area_bytes[0])};
  // Attention streams through blocks of some hundred kilobytes; a refusal only costs speed.
  (void)madvise(pool->areas_[0], area_bytes[0] + area_bytes[1], MADV_HUGEPAGE);
  return pool;
}

BlockPool::BlockPool(std::array<size_t, 2> part_bytes, int32_t max_blocks, CacheBudget* budget)
    : part_bytes_(part_bytes), max_blocks_(max_blocks), budget_(budget) {}

BlockPool::~BlockPool() {
  for (const Block& block : blocks_) KERNEL_CHECK(block.users == 0 && block.keepers == 0);
  budget_->AddIdle(-block_bytes() * static_cast<int64_t>(idle_.size()));
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
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
    if (part_bytes_[i] > 0) std::memcpy(part(i, to), part(i, from), part_bytes_[i]);
  }
}

int64_t BlockPool::ReleaseIdle(int64_t bytes) {
  int64_t done = 0;
  while (done < bytes && !idle_.empty()) {
    const int32_t block = idle_.back();
    idle_.pop_back();
    released_.push_back(block);
    for (int i = 0; i < 2; ++i) {
      if (part_bytes_[i] > 0) (void)madvise(part(i, block), part_bytes_[i], MADV_DONTNEED);
    }
    done += block_bytes();
  }
  budget_->AddIdle(-done);
  return done;
}

}  // namespace longview::kernels
