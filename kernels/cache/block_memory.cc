#include "kernels/cache/block_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>

#include "kernels/base/check.h"

namespace longview::kernels {
namespace {

// Ranges begin where a huge page may.
constexpr size_t kHugePage = size_t{2} << 20;

size_t AlignTo(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

std::byte* HostBlockMemory::Reserve(size_t bytes) {
  const size_t size = AlignTo(bytes, kHugePage), room = size + kHugePage;
  void* const mapping = mmap(nullptr, room, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(mapping);
  const size_t before = AlignTo(reinterpret_cast<uintptr_t>(mapping), kHugePage) -
                        reinterpret_cast<uintptr_t>(mapping);
  if (before > 0) munmap(begin, before);
  if (before < kHugePage) munmap(begin + before + size, kHugePage - before);
  // Attention streams through blocks of some hundred kilobytes; a refusal only costs speed.
  (void)madvise(begin + before, size, MADV_HUGEPAGE);
  return begin + before;
}

void HostBlockMemory::Return(std::byte* memory, size_t bytes) {
  munmap(memory, AlignTo(bytes, kHugePage));
}

void HostBlockMemory::Copy(std::byte* to, const std::byte* from, size_t bytes) {
  std::memcpy(to, from, bytes);
}

void HostBlockMemory::Release(std::byte* memory, size_t bytes) {
  KERNEL_CHECK(reinterpret_cast<uintptr_t>(memory) % kPage == 0 && bytes % kPage == 0);
  (void)madvise(memory, bytes, MADV_DONTNEED);
}

}  // namespace longview::kernels
