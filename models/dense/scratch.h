// One aligned block of memory, carved into buffers once and reused by every layer of a run.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include "kernels/base/workspace.h"

namespace longview::models {

// Counts bytes first (base null), then hands the same buffers out of a block: the two passes
// run the same code, so a measured size is exact.
class Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}

  // `count` elements of T, 64-byte aligned, uninitialised.
  template <typename T>
  T* Take(int64_t count) {
    return reinterpret_cast<T*>(TakeBytes(static_cast<size_t>(count) * sizeof(T)));
  }
  std::byte* TakeBytes(size_t bytes) {
    std::byte* at = base_ == nullptr ? nullptr : base_ + used_;
    used_ += kernels::AlignUp(bytes);
    return at;
  }
  size_t used() const { return used_; }

 private:
  std::byte* base_;
  size_t used_ = 0;
};

// Owns a block. Throws std::bad_alloc.
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(size_t bytes) : Scratch(bytes, kernels::kAlignment) {}

  // For what is read from end to end again and again: in huge pages, where the system has them.
  static Scratch InHugePages(size_t bytes) {
    constexpr size_t kHugePage = size_t{2} << 20;
    Scratch scratch(bytes, kHugePage);
    (void)madvise(scratch.data(), bytes, MADV_HUGEPAGE);  // A refusal only costs speed.
    return scratch;
  }

  std::byte* data() const { return block_.get(); }
  size_t bytes() const { return bytes_; }

 private:
  Scratch(size_t bytes, size_t alignment) : bytes_(bytes) {
    // Unlike aligned_alloc, it takes sizes that are no multiple of the alignment.
    void* block = nullptr;
    if (posix_memalign(&block, alignment, kernels::AlignUp(bytes ? bytes : 1)) != 0) {
      throw std::bad_alloc();
    }
    block_.reset(static_cast<std::byte*>(block));
  }

  struct Free {
    void operator()(std::byte* block) const { std::free(block); }
  };
  std::unique_ptr<std::byte, Free> block_;
  size_t bytes_ = 0;
};

}  // namespace longview::models
