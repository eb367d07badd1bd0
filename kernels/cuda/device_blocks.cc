#include "kernels/cuda/device_blocks.h"

namespace longview::kernels::cuda {

std::byte* DeviceBlocks::Reserve(size_t bytes) {
  void* memory = nullptr;
  return api_.allocate(device_, bytes, &memory) == 0 ? static_cast<std::byte*>(memory) : nullptr;
}

void DeviceBlocks::Return(std::byte* memory, size_t) {
  Keep(api_.synchronize(stream_));
  Keep(api_.release(device_, memory));
}

void DeviceBlocks::Copy(std::byte* to, const std::byte* from, size_t bytes) {
  Keep(api_.copy(stream_, to, from, bytes));
}

}  // namespace longview::kernels::cuda
