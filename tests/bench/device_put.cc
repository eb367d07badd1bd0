#include "tests/bench/device_put.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "models/device/device_memory.h"

namespace longview::bench {
namespace {

constexpr size_t kPinned = size_t{4} << 20;

}  // namespace

PutBytes PutOnDevice(const models::Device& device) {
  const auto pinned = std::make_shared<models::PinnedBlock>(device, kPinned);
  return [&device, pinned](void* to, const void* from, size_t bytes) {
    for (size_t done = 0; done < bytes; done += kPinned) {
      const size_t part = std::min(kPinned, bytes - done);
      std::memcpy(pinned->data(), static_cast<const std::byte*>(from) + done, part);
      device.Check(device.api().copy_in(device.stream(), static_cast<std::byte*>(to) + done,
                                        pinned->data(), part),
                   "rows of a cache");
      device.Wait();
    }
  };
}

}  // namespace longview::bench
