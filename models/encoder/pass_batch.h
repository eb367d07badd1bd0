// Passes as batches: on the host, and as parts of a batch on a device.
#pragma once

#include <memory>
#include <optional>

#include "models/dense/scratch_keeper.h"
#include "models/device/device_run.h"
#include "models/encoder/family.h"
#include "models/encoder/pass.h"
#include "models/layers/compute_context.h"
#include "models/ops/device_ops.h"
#include "models/ops/host_ops.h"

namespace longview::models {

// A pass on the host. Used by the executor's thread; throws what LibTorch and the allocator throw.
class HostPass {
 public:
  // REQUIRES: context and scratch outlive it. `times` may be null.
  HostPass(std::unique_ptr<EncoderPass> pass, const ComputeContext& context, ScratchKeeper& scratch,
           EncoderTimes* times);

  // Exact bytes that it borrows of scratch.
  static size_t ScratchBytes(EncoderPass& pass, const ComputeContext& context);

  size_t scratch_bytes() const { return need_.memory(); }

  // As EncoderBatch. Sequences count as they were given.
  bool Advance();
  void Drop(int i) { pass_->batch().Drop(i); }
  const float* Rows(int i) const;
  ExtraRowsView Extra(int i) const;

 private:
  const std::unique_ptr<EncoderPass> pass_;
  const OpsNeed need_;
  ScratchLoan scratch_;
  HostOps ops_;
  int layer_ = 0;
};

// A pass as a part of a batch on a device. Results are the wanted rows, then the extra ones.
class DevicePassPart final : public DevicePart {
 public:
  // REQUIRES: the device outlives the part.
  DevicePassPart(std::unique_ptr<EncoderPass> pass, const Device& device, Compute compute);

  DeviceRunBytes bytes() const override { return bytes_; }
  // The same for sequences of these lengths whatever their masks.
  const DeviceRunBytes& most_bytes() const { return most_bytes_; }

  void Stage(StagedLists& lists) override;
  void Carve(Carver& carver) override;
  int layers() const override { return pass_->layers(); }
  void Embed() override { pass_->Embed(ops_); }
  void RunLayer(int layer, const DeviceTimer& timer) override;
  void AddResults(DeviceResults& results) const override;

 private:
  const std::unique_ptr<EncoderPass> pass_;
  DeviceOps ops_;
  OpsNeed need_;
  DeviceRunBytes bytes_, most_bytes_;
};

}  // namespace longview::models
