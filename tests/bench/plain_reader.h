// Memory read as fast as a plain loop can: what decoding, which reads everything once a step, is
// held against.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/parallel.h"

namespace longview::bench {

// Used by one thread.
class PlainReader {
 public:
  // Reads `bytes` bytes in huge pages, every thread of `pool` its own share.
  PlainReader(int64_t bytes, const kernels::ParallelFor& pool);
  ~PlainReader();
  PlainReader(const PlainReader&) = delete;
  PlainReader& operator=(const PlainReader&) = delete;

  int64_t bytes() const { return bytes_; }
  // All of it once.
  void Read();

 private:
  const kernels::ParallelFor& pool_;
  int64_t bytes_;
  uint64_t* memory_ = nullptr;
  std::vector<uint64_t> sums_;
};

}  // namespace longview::bench
