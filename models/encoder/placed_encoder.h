// A family's encoder where it runs: on the host, or with its layers on a device and its heads on
// the host.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "models/cost/work.h"
#include "models/dense/scratch_pool.h"
#include "models/dense/weight_format.h"
#include "models/device/placement.h"
#include "models/encoder/batch.h"
#include "models/encoder/family.h"
#include "models/layers/compute_context.h"
#include "models/parallel.h"

namespace longview::models {

// The cost of a batch of sequences.
struct EncoderCost {
  EncoderWork work;
  // Exact, beside weights and logits. On a device: of the rows that come back, since its memory was
  // taken at load.
  size_t workspace_bytes = 0;
};

// Thread-safe but for Begin, which belongs to the executor's thread.
class PlacedEncoder {
 public:
  using Sequences = EncoderFamily::Sequences;

  // Loads the weights for the host. Errors are those of EncoderFamily::Load.
  static absl::StatusOr<std::unique_ptr<PlacedEncoder>> OnHost(
      std::unique_ptr<EncoderFamily> family, WeightFormat format);
  // Loads the layers onto `device` and the heads in fp32, and takes memory for as many documents of
  // the longest kind at once as fit and are of use. RESOURCE_EXHAUSTED if weights and one do not
  // fit: the message has need and limit. Throws DeviceError; within a Device::Turn. REQUIRES: no
  // OddWidth.
  static absl::StatusOr<std::unique_ptr<PlacedEncoder>> OnDevice(
      std::unique_ptr<EncoderFamily> family, const ModelDirectory& directory, Compute compute,
      std::unique_ptr<Device> device);

  const EncoderFamily& family() const { return *family_; }
  const EncoderFacts& facts() const { return family_->facts(); }
  Compute compute() const { return workspace_ ? placement_.compute : context_.compute; }
  double memory_bytes() const;

  // The batch. REQUIRES: sequences, scratch and this outlive it. `times` is added to, unless null.
  std::unique_ptr<EncoderBatch> Begin(Sequences sequences, ScratchPool& scratch,
                                      RunTimes* times) const;

  // The heads of all items of a batch that were not dropped, together, after its last layer.
  std::vector<HeadOutput> ComputeHeads(const EncoderBatch& batch,
                                       std::span<const HeadInput> inputs) const;

  // By counting their forward once.
  EncoderCost CostOf(Sequences sequences) const;

 private:
  PlacedEncoder(std::unique_ptr<EncoderFamily> family, Compute compute)
      : family_(std::move(family)), context_(compute, pool_) {}

  const std::unique_ptr<const EncoderFamily> family_;
  const TorchParallelFor pool_;
  const ComputeContext context_;  // The host's; in fp32 beside a device.
  DevicePlacement placement_;     // Without a device on the host.
  std::unique_ptr<DeviceBlock> store_;
  // Null on the host. Used by the executor's thread, as batches are.
  std::unique_ptr<DeviceWorkspace> workspace_;
};

}  // namespace longview::models
