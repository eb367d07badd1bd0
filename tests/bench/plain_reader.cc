#include "tests/bench/plain_reader.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace longview::bench {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int kSums = 8;

typedef uint64_t Words __attribute__((vector_size(64)));

// The vectors of [begin, end), in eight chains.
__attribute__((target_clones("avx512f", "avx2", "default"))) uint64_t Sum(const uint64_t* begin,
                                                                          const uint64_t* end) {
  Words sums[kSums] = {};
  const auto* last = reinterpret_cast<const Words*>(end);
  for (const auto* at = reinterpret_cast<const Words*>(begin); at < last; at += kSums) {
    for (int i = 0; i < kSums; ++i) sums[i] += at[i];
  }
  uint64_t total = 0;
  for (const Words& sum : sums) {
    for (int i = 0; i < 8; ++i) total += sum[i];
  }
  return total;
}

}  // namespace

PlainReader::PlainReader(int64_t bytes, const kernels::ParallelFor& pool)
    : pool_(pool),
      bytes_((bytes + kHugePage - 1) / kHugePage * kHugePage),
      sums_(static_cast<size_t>(pool.threads())) {
  memory_ = static_cast<uint64_t*>(std::aligned_alloc(kHugePage, static_cast<size_t>(bytes_)));
  if (memory_ == nullptr) {
    std::fprintf(stderr, "no memory to read from\n");
    std::exit(1);
  }
  (void)madvise(memory_, static_cast<size_t>(bytes_), MADV_HUGEPAGE);
  std::memset(memory_, 3, static_cast<size_t>(bytes_));
}

PlainReader::~PlainReader() { std::free(memory_); }

void PlainReader::Read() {
  kernels::RunOnThreads(pool_, [&](int thread) {
    const int64_t chunks = bytes_ / (kSums * 64), threads = pool_.threads();
    sums_[thread] += Sum(memory_ + chunks * thread / threads * kSums * 8,
                         memory_ + chunks * (thread + 1) / threads * kSums * 8);
  });
}

}  // namespace longview::bench
