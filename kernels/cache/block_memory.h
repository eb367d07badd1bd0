// Memory of cache blocks: the host's, or that of a device which the host cannot read. Lists, ids
// and reference counts are the host's in either case.
//
// Used by the thread that uses the pools.
#pragma once

#include <cstddef>

namespace longview::kernels {

class BlockMemory {
 public:
  virtual ~BlockMemory() = default;

  // Addresses for `bytes` bytes, which never move and are aligned for any element. What is there is
  // undefined. Null: there is not that much.
  virtual std::byte* Reserve(size_t bytes) = 0;
  // Gives back what Reserve gave for as many bytes.
  virtual void Return(std::byte* memory, size_t bytes) = 0;

  // Copies behind all work that was handed over before, and before any that comes later. The two
  // do not overlap.
  virtual void Copy(std::byte* to, const std::byte* from, size_t bytes) = 0;

  // Nobody reads these bytes until somebody writes them again: the system may use their memory.
  virtual void Release(std::byte* memory, size_t bytes) = 0;
};

// Ranges of addresses that the system backs where they are used. Released are whole pages of kPage
// bytes; REQUIRES of those who release: addresses and sizes are multiples of it.
class HostBlockMemory final : public BlockMemory {
 public:
  static constexpr size_t kPage = 4096;

  std::byte* Reserve(size_t bytes) override;
  void Return(std::byte* memory, size_t bytes) override;
  void Copy(std::byte* to, const std::byte* from, size_t bytes) override;
  void Release(std::byte* memory, size_t bytes) override;
};

}  // namespace longview::kernels
