// A batch of a text encoder whose layers are on a device and whose heads are on the host.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/device/device_run.h"
#include "models/encoder/family.h"

namespace longview::models {

// What came back of one sequence, rows of the family's width.
struct SequenceRows {
  std::vector<float> wanted;  // [wanted, H]
  std::vector<float> extra;   // [DeviceEncoderLayers::ExtraRows, H]
};

// What a family brings. Used by the executor's thread.
class DeviceEncoderLayers {
 public:
  using Sequences = std::span<const EncoderSequence* const>;

  virtual ~DeviceEncoderLayers() = default;

  // The sequences as a part, which borrows them. Results of a part are fp32 rows of the width: the
  // wanted rows of all sequences, then the extra rows of all.
  virtual std::unique_ptr<DevicePart> Plan(Sequences sequences) const = 0;

  // Rows beside the wanted ones that heads read: a class vector, a summary.
  virtual int64_t ExtraRows(const EncoderSequence&) const { return 0; }

  // As EncoderBatch. `rows`: of all sequences of the batch; empty where dropped.
  virtual std::vector<HeadOutput> ComputeHeads(std::span<const HeadInput> inputs,
                                               std::span<const SequenceRows> rows) const = 0;
};

// See EncoderBatch. Throws DeviceError, too.
class DeviceEncoderBatch final : public EncoderBatch, private DeviceItems {
 public:
  // REQUIRES: everything borrowed outlives the batch.
  DeviceEncoderBatch(const Device& device, DeviceWorkspace& workspace,
                     const DeviceEncoderLayers& layers, DeviceEncoderLayers::Sequences sequences,
                     int64_t width, EncoderTimes* times);

  bool Advance() override { return run_.Advance(); }
  void Drop(int i) override { run_.Drop(i); }
  const float* Rows(int i) const override { return rows_[i].wanted.data(); }
  std::vector<HeadOutput> ComputeHeads(std::span<const HeadInput> inputs) const override {
    return layers_.ComputeHeads(inputs, rows_);
  }

 private:
  int size() const override { return static_cast<int>(sequences_.size()); }
  std::string NameOf(int item) const override;
  std::unique_ptr<DevicePart> Plan(std::span<const int> items) const override;
  void Keep(std::span<const int> items, const std::byte* results) override;

  const DeviceEncoderLayers& layers_;
  const std::vector<const EncoderSequence*> sequences_;
  const size_t width_;
  std::vector<SequenceRows> rows_;  // By sequence.
  DeviceRun run_;
};

}  // namespace longview::models
