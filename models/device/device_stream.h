// Further streams of a device and points of its streams, by owner.
#pragma once

#include "models/device/device.h"

namespace longview::models {

// A point of a stream. Before its first Record there is nothing to wait for.
class DeviceEvent {
 public:
  // Throws DeviceError.
  explicit DeviceEvent(const Device& device) : device_(device) {
    device_.Check(device_.api().create_event(device_.index(), &event_), "an event");
  }
  ~DeviceEvent() { (void)device_.api().destroy_event(event_); }
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;

  // Behind what the stream was handed so far.
  void Record(kernels::cuda::Stream* stream) const {
    device_.Check(device_.api().record(stream, event_), "recording an event");
  }
  // Work that the stream is handed from now on runs behind the last Record. The host does not wait.
  void HoldUp(kernels::cuda::Stream* stream) const {
    device_.Check(device_.api().wait(stream, event_), "waiting for an event");
  }
  // The host waits.
  void Wait() const { device_.Check(device_.api().synchronize_event(event_), "an event"); }

 private:
  const Device& device_;
  kernels::cuda::Event* event_ = nullptr;
};

// A stream beside the device's own. Its destructor waits for its work.
class DeviceStream {
 public:
  // Throws DeviceError.
  explicit DeviceStream(const Device& device) : device_(device) {
    device_.Check(device_.api().create_stream(device_.index(), &stream_), "a stream");
  }
  ~DeviceStream() { (void)device_.api().destroy_stream(stream_); }
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;

  kernels::cuda::Stream* get() const { return stream_; }

 private:
  const Device& device_;
  kernels::cuda::Stream* stream_ = nullptr;
};

}  // namespace longview::models
