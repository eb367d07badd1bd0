// The frame of a text encoder on a device: Host is the family's class of weighted_family.h, with
// weights that hold embeddings and heads for the host in fp32 and no layers. It says how tokens are
// placed, what sequences cost and what the model is; a family derives from
// DeviceEncoderFamily<Host> and adds what DeviceEncoderLayers asks for.
#pragma once

#include <memory>
#include <utility>

#include "models/device/device_seat.h"
#include "models/encoder/device_encoder.h"

namespace longview::models {

template <class Host>
class DeviceEncoderFamily : public Host, protected DeviceEncoderLayers {
 public:
  using Sequences = EncoderFamily::Sequences;

  // Throws DeviceError.
  DeviceEncoderFamily(typename Host::Config config, typename Host::Weights weights, DeviceSeat seat)
      : Host(std::move(config), std::move(weights), Compute::kFp32),
        seat_(std::move(seat)),
        workspace_(*seat_.device, seat_.room) {}

  Compute compute() const final { return seat_.compute; }
  double memory_bytes() const final {
    return static_cast<double>(seat_.weight_bytes + workspace_.room().device());
  }

  std::unique_ptr<EncoderBatch> Begin(Sequences sequences, ScratchKeeper&,
                                      EncoderTimes* times) const final {
    const DeviceEncoderLayers& layers = *this;
    return std::make_unique<DeviceEncoderBatch>(*seat_.device, workspace_, layers, sequences,
                                                this->config_.width, times);
  }

  // Of the host: the rows that come back. The device's memory was taken when the model loaded.
  size_t WorkspaceBytes(Sequences sequences) const final {
    int64_t rows = 0;
    for (const EncoderSequence* sequence : sequences) {
      rows += static_cast<int64_t>(sequence->wanted.size()) + ExtraRows(*sequence);
    }
    return static_cast<size_t>(rows * this->config_.width) * sizeof(float);
  }

 protected:
  const Device& device() const { return *seat_.device; }

 private:
  const DeviceSeat seat_;
  mutable DeviceWorkspace workspace_;  // Of the executor's thread, as batches are.
};

}  // namespace longview::models
