// Longformer's encoder on a device: a batch's rows go in once and come out once, everything between
// stays in the device's memory and is handed to one stream without waiting for it.
//
// A batch that is too large for the model's workspace runs in parts, one after the other: rows do
// not depend on their company, so their bits are the same.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "models/encoder/family.h"
#include "models/longformer/device_batch.h"
#include "models/longformer/device_layer.h"
#include "models/longformer/device_workspace.h"
#include "models/longformer/encoder_buffers.h"

namespace longview::models {

// A batch in flight. One thread uses it. The constructor, Advance and ComputeHeads throw
// DeviceError and what LibTorch and the allocator throw.
class DeviceEncoderRun final : public EncoderBatch {
 public:
  using Sequences = std::span<const EncoderSequence* const>;

  // REQUIRES: everything borrowed outlives the run. `host` is for heads. With `times` the host
  // waits after every step and adds up: for calibration.
  DeviceEncoderRun(const DeviceEncoderContext& context, const EncoderContext& host,
                   DeviceWorkspace& workspace, Sequences sequences, EncoderTimes* times);
  ~DeviceEncoderRun() override;

  bool Advance() override;

  // Rows that nobody waits for stay in their batch: a device gains nothing from closing gaps in
  // work it was already handed. Parts of which nobody waits are left out.
  void Drop(int i) override { dropped_[i] = true; }

  const float* Rows(int i) const override { return rows_[i].data(); }

  std::vector<HeadOutput> ComputeHeads(std::span<const HeadInput> inputs) const override;

 private:
  // Sequences [first, first + batch.size()) as given.
  struct Part {
    size_t first = 0;
    DeviceBatch batch;
  };

  void Split(size_t first, size_t count);
  bool Wanted(const Part& part) const;
  void BeginPart();
  void RunLayer();
  void EndPart();
  template <typename Body>
  void Timed(double EncoderTimes::*sum, Body&& body);

  const DeviceEncoderContext context_;
  const EncoderContext host_;
  DeviceWorkspace& workspace_;
  bool holds_workspace_ = false;  // From the first part's begin to the last one's end.
  EncoderTimes* const times_;
  const std::vector<const EncoderSequence*> sequences_;
  std::vector<bool> dropped_;
  std::vector<Part> parts_;
  size_t part_ = 0;
  int layer_ = 0;  // Of the part; 0: not begun.
  DeviceBuffers buffers_;
  std::vector<std::vector<float>> rows_;  // By sequence: [wanted, H].
};

}  // namespace longview::models
