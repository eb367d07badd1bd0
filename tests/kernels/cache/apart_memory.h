// Memory that the host cannot touch at its addresses, as a device's: a stray read or write of the
// cache ends the test. Tests reach the same bytes at another address.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>

#include "kernels/base/check.h"
#include "kernels/cache/block_memory.h"

namespace longview::kernels::testing {

class ApartMemory final : public BlockMemory {
 public:
  ~ApartMemory() override { KERNEL_CHECK(ranges_.empty()); }

  std::byte* Reserve(size_t bytes) override {
    const int file = memfd_create("blocks", 0);
    KERNEL_CHECK(file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0);
    const auto map = [&](int rights) {
      void* const mapping = mmap(nullptr, bytes, rights, MAP_SHARED | MAP_NORESERVE, file, 0);
      KERNEL_CHECK(mapping != MAP_FAILED);
      return static_cast<std::byte*>(mapping);
    };
    std::byte* const outside = map(PROT_NONE);
    ranges_[outside] = {map(PROT_READ | PROT_WRITE), bytes};
    close(file);
    return outside;
  }

  void Return(std::byte* memory, size_t bytes) override {
    const Range range = ranges_.at(memory);
    KERNEL_CHECK(range.bytes == bytes);
    munmap(memory, bytes);
    munmap(range.inside, bytes);
    ranges_.erase(memory);
  }

  void Copy(std::byte* to, const std::byte* from, size_t bytes) override {
    std::memcpy(Inside(to), Inside(from), bytes);
  }

  // A read after the release spoils every comparison.
  void Release(std::byte* memory, size_t bytes) override {
    std::memset(Inside(memory), 0x7f, bytes);
  }

  size_t reserved() const {
    size_t bytes = 0;
    for (const auto& [begin, range] : ranges_) bytes += range.bytes;
    return bytes;
  }

  // The address at which a test can read what lies at `outside`.
  std::byte* Inside(const std::byte* outside) const {
    const auto after = ranges_.upper_bound(outside);
    KERNEL_CHECK(after != ranges_.begin());
    const auto& [begin, range] = *std::prev(after);
    KERNEL_CHECK(outside < begin + range.bytes);
    return range.inside + (outside - begin);
  }

 private:
  struct Range {
    std::byte* inside = nullptr;
    size_t bytes = 0;
  };

  std::map<const std::byte*, Range> ranges_;
};

}  // namespace longview::kernels::testing
