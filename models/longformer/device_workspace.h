// The memory that batches of one model use on a device, sized when the model loads: lists of rows,
// buffers, and pinned memory for what is copied in and out. A batch too large for it runs in parts,
// so nothing is ever asked for while serving.
#pragma once

#include <cstddef>

#include "models/device/device_memory.h"
#include "models/longformer/device_batch.h"

namespace longview::models {

struct DeviceRunBytes {
  size_t lists = 0;
  size_t buffers = 0;
  size_t results = 0;

  // The larger of each.
  void Include(const DeviceRunBytes& other);
  bool Fits(const DeviceRunBytes& room) const {
    return lists <= room.lists && buffers <= room.buffers && results <= room.results;
  }
  DeviceRunBytes Times(size_t n) const { return {lists * n, buffers * n, results * n}; }
  size_t device() const { return lists + buffers; }
};

// What a batch needs, exactly.
DeviceRunBytes BytesOf(const LongformerConfig& config, Compute compute, const DeviceBatch& batch);

// The most that one document needs, whatever its masks and the rows it wants. Buffers grow with the
// number of global tokens, folded or not, and of wanted rows; lists are bounded as if every row
// were a tile of its own.
DeviceRunBytes LongestDocumentBytes(const LongformerConfig& config, Compute compute,
                                    int max_tokens);

// Used by the executor's thread.
class DeviceWorkspace {
 public:
  // Throws DeviceError.
  DeviceWorkspace(const Device& device, const DeviceRunBytes& room)
      : room_(room), device_(device, room.device()), pinned_(device, room.lists + room.results) {}

  const DeviceRunBytes& room() const { return room_; }
  std::byte* lists() const { return device_.data(); }
  std::byte* buffers() const { return device_.data() + room_.lists; }
  std::byte* pinned_lists() const { return pinned_.data(); }
  std::byte* pinned_results() const { return pinned_.data() + room_.lists; }

  // One batch at a time: false if another has it.
  bool Take() {
    const bool free = !taken_;
    taken_ = true;
    return free;
  }
  void GiveBack() { taken_ = false; }

 private:
  const DeviceRunBytes room_;
  const DeviceBlock device_;
  const PinnedBlock pinned_;
  bool taken_ = false;
};

}  // namespace longview::models
