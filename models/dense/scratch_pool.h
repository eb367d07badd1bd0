// Keeps one block of scratch and leases it to one run after another: a short run would spend a good
// part of its time on pages fresh from the system.
//
// Memory kept while nothing runs is bounded: blocks above `most_kept` bytes go back
// at once (a run that needs so much computes long enough not to notice), and a block that recent
// runs left mostly unused goes back after a few of them.
// Not thread-safe: a model's pool belongs to the executor's thread, as its runs do.
#pragma once

#include <cstddef>
#include <utility>

#include "models/dense/scratch.h"

namespace longview::models {

class ScratchPool {
 public:
  // `patience`: runs in a row that use less than half of the kept block before it is given up.
  explicit ScratchPool(size_t most_kept = size_t{64} << 20, int patience = 16)
      : most_kept_(most_kept), patience_(patience) {}

  // Bytes held while nothing is leased.
  size_t kept_bytes() const { return kept_.bytes(); }

 private:
  friend class ScratchLease;

  // A block of at least `bytes`, uninitialised; its end is out of bounds for AddressSanitizer.
  // Throws std::bad_alloc.
  Scratch Acquire(size_t bytes);
  void Return(Scratch block, size_t used);

  const size_t most_kept_;
  const int patience_;
  Scratch kept_;
  int small_runs_ = 0;  // In a row.
};

// Holds a block for the length of a run. The pool outlives it.
class ScratchLease {
 public:
  // Throws std::bad_alloc.
  ScratchLease(ScratchPool& pool, size_t bytes)
      : pool_(pool), bytes_(bytes), block_(pool.Acquire(bytes)) {}
  ~ScratchLease() { pool_.Return(std::move(block_), bytes_); }
  ScratchLease(const ScratchLease&) = delete;
  ScratchLease& operator=(const ScratchLease&) = delete;

  std::byte* data() const { return block_.data(); }  // 64-byte aligned, `bytes` long.

 private:
  ScratchPool& pool_;
  const size_t bytes_;
  Scratch block_;
};

}  // namespace longview::models
