// Memory of a device and pinned memory of the host, by block. All is asked for when a model loads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/base/workspace.h"
#include "models/device/device.h"

namespace longview::models {

// Alignment of blocks, and of the parts cut out of them for different uses: kernels read 16 bytes
// at a time, products more.
inline constexpr size_t kDeviceAlignment = 256;

inline constexpr size_t AlignForDevice(size_t bytes) {
  return kernels::AlignUp(bytes, kDeviceAlignment);
}

enum class MemoryPlace {
  kDevice,
  kPinned,  // On the host, where the device copies from and to.
};

// Owns a block of memory. Throws DeviceError.
template <MemoryPlace kPlace>
class MemoryBlock {
 public:
  MemoryBlock(const Device& device, size_t bytes);
  ~MemoryBlock();
  MemoryBlock(const MemoryBlock&) = delete;
  MemoryBlock& operator=(const MemoryBlock&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  size_t bytes() const { return bytes_; }

 private:
  const Device& device_;
  const size_t bytes_;
  void* data_ = nullptr;
};

using DeviceBlock = MemoryBlock<MemoryPlace::kDevice>;
using PinnedBlock = MemoryBlock<MemoryPlace::kPinned>;

// Brings weights to the device while a model loads, through one pinned block. Throws DeviceError.
class WeightUpload {
 public:
  explicit WeightUpload(const Device& device);

  // `to` holds values.size() elements of the compute type.
  void Put(std::span<const float> values, Compute compute, void* to);

 private:
  const Device& device_;
  PinnedBlock staging_;
};

}  // namespace longview::models
