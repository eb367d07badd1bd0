#include "models/dense/scratch_pool.h"

#include <sanitizer/asan_interface.h>

#include <utility>

namespace longview::models {

Scratch ScratchPool::Acquire(size_t bytes) {
  // The old block goes before a larger one comes, so that the peak is never both.
  Scratch block = std::exchange(kept_, Scratch());
  if (block.bytes() < bytes || block.data() == nullptr) {
    block = Scratch();
    block = Scratch(bytes);
  }
  ASAN_POISON_MEMORY_REGION(block.data() + bytes, block.bytes() - bytes);
  return block;
}

void ScratchPool::Return(Scratch block, size_t used) {
  ASAN_UNPOISON_MEMORY_REGION(block.data(), block.bytes());
  small_runs_ = used < block.bytes() / 2 ? small_runs_ + 1 : 0;
  if (small_runs_ >= patience_) {
    small_runs_ = 0;
    return;
  }
  // Two runs at a time are allowed; the larger block serves both kinds later.
  if (block.bytes() <= most_kept_ && block.bytes() > kept_.bytes()) kept_ = std::move(block);
}

}  // namespace longview::models
