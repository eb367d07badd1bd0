// The memory that batches of one model use on a device, sized when the model loads: lists of rows,
// buffers, and pinned memory for what is copied in and out. A batch too large for it runs in parts
// (device_run.h), so nothing is ever asked for while serving.
#pragma once

#include <cstddef>

#include "models/device/device_list_slots.h"
#include "models/device/device_memory.h"

namespace longview::models {

// Needs of a part of a batch, or the room there is.
struct DeviceRunBytes {
  size_t lists = 0;    // Written by the host, read by kernels.
  size_t buffers = 0;  // On the device alone.
  size_t results = 0;  // Copied back.

  // The larger of each.
  void Include(const DeviceRunBytes& other);
  bool Fits(const DeviceRunBytes& room) const {
    return lists <= room.lists && buffers <= room.buffers && results <= room.results;
  }
  DeviceRunBytes Times(size_t n) const { return {lists * n, buffers * n, results * n}; }
  // Bytes of the device's memory for a workspace of this room.
  size_t device() const { return DeviceListSlots::DeviceBytes(lists) + AlignForDevice(buffers); }
};

// Used by the executor's thread.
class DeviceWorkspace {
 public:
  // Throws DeviceError.
  DeviceWorkspace(const Device& device, const DeviceRunBytes& room)
      : room_(room),
        lists_(device, room.lists),
        buffers_(device, AlignForDevice(room.buffers)),
        results_(device, room.results) {}

  const DeviceRunBytes& room() const { return room_; }
  DeviceListSlots& lists() { return lists_; }
  // kDeviceAlignment bytes aligned, as lists are.
  std::byte* buffers() const { return buffers_.data(); }
  std::byte* pinned_results() const { return results_.data(); }

  // One batch at a time: false if another has it.
  bool Take() {
    const bool free = !taken_;
    taken_ = true;
    return free;
  }
  void GiveBack() { taken_ = false; }

 private:
  const DeviceRunBytes room_;
  DeviceListSlots lists_;
  const DeviceBlock buffers_;
  const PinnedBlock results_;
  bool taken_ = false;
};

}  // namespace longview::models
