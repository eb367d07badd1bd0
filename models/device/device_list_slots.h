// Two places for the lists of a batch's parts, which take turns: while kernels read one part's
// lists, the next part's are written and copied.
//
//   host       Begin waits for the last copy out of the pinned memory it hands out
//   copies     on a stream of their own, behind the kernels that read the place before (Leave)
//   kernels    on the device's stream, behind the copy (Enter)
//
// One thread at a time, the device's.
#pragma once

#include <array>
#include <cstddef>

#include "models/device/device_memory.h"
#include "models/device/device_stream.h"
#include "models/device/staged_lists.h"

namespace longview::models {

class DeviceListSlots {
 public:
  // Lists of up to `bytes` bytes. Throws DeviceError, as all members do.
  DeviceListSlots(const Device& device, size_t bytes);

  // Bytes of the device's memory.
  static size_t DeviceBytes(size_t bytes) { return 2 * AlignForDevice(bytes); }

  // The place that kernels do not read. Lists that were sent and not entered are replaced.
  StagedLists Begin() const;
  void Send(const StagedLists& lists) const;

  // Work that the device's stream is handed from now on reads the lists sent last. REQUIRES: Send.
  void Enter();
  // Work that it was handed so far is the last to read them.
  void Leave() const;

 private:
  struct Slot {
    explicit Slot(const Device& device) : copied(device), read(device) {}
    DeviceEvent copied, read;
  };

  std::byte* Of(std::byte* block, int slot) const { return block + slot * stride_; }

  const Device& device_;
  const size_t stride_;
  const DeviceBlock memory_;
  const PinnedBlock pinned_;
  const std::array<Slot, 2> slots_;
  int entered_ = 0;
  const DeviceStream copies_;  // The first to go: its work names all of the above.
};

}  // namespace longview::models
