#include "models/device/device_list_slots.h"

#include "kernels/base/check.h"

namespace longview::models {

DeviceListSlots::DeviceListSlots(const Device& device, size_t bytes)
    : device_(device),
      stride_(AlignForDevice(bytes)),
      memory_(device, DeviceBytes(bytes)),
      pinned_(device, DeviceBytes(bytes)),
      slots_{Slot(device), Slot(device)},
      copies_(device) {}

StagedLists DeviceListSlots::Begin() const {
  const int slot = 1 - entered_;
  slots_[slot].copied.Wait();
  return {Of(pinned_.data(), slot), Of(memory_.data(), slot)};
}

void DeviceListSlots::Send(const StagedLists& lists) const {
  KERNEL_CHECK(lists.used() <= stride_);
  const int slot = 1 - entered_;
  slots_[slot].read.HoldUp(copies_.get());
  device_.Check(device_.api().copy_in(copies_.get(), Of(memory_.data(), slot),
                                      Of(pinned_.data(), slot), lists.used()),
                "a batch's lists");
  slots_[slot].copied.Record(copies_.get());
}

void DeviceListSlots::Enter() {
  entered_ = 1 - entered_;
  slots_[entered_].copied.HoldUp(device_.stream());
}

void DeviceListSlots::Leave() const { slots_[entered_].read.Record(device_.stream()); }

}  // namespace longview::models
