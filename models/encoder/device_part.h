// What parts of a batch of a text encoder have in common on a device: who is in them, their tokens,
// what they need.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/span/plan.h"
#include "models/device/device_run.h"
#include "models/encoder/ragged_batch.h"

namespace longview::models {

class DeviceEncoderPart : public DevicePart {
 public:
  using Sequences = RaggedBatch::Sequences;

  DeviceRunBytes bytes() const final { return bytes_; }
  // The same for sequences of these lengths whatever their masks.
  const DeviceRunBytes& most_bytes() const { return most_bytes_; }

 protected:
  // On the device, [rows] each.
  struct Tokens {
    const int32_t* ids = nullptr;
    const int32_t* positions = nullptr;
    const int32_t* types = nullptr;
    const uint8_t* roles = nullptr;
  };

  // Borrows the sequences.
  explicit DeviceEncoderPart(Sequences sequences) : batch_(sequences) {}

  // Ends the constructor of a final class: `plans` are those that Stage writes, `result_rows` of
  // `width` floats come back.
  void Count(std::initializer_list<const kernels::Plan*> plans, int64_t result_rows, int64_t width);

  const RaggedBatch& batch() const { return batch_; }
  // Rows of the batch that heads read, sequence by sequence.
  std::vector<int32_t> WantedRows() const;
  // `extra` rows behind the sequences have this id at this position.
  Tokens StageTokens(StagedLists& lists, int64_t extra = 0, int32_t id = 0,
                     int32_t position = 0) const;

 private:
  const RaggedBatch batch_;
  DeviceRunBytes bytes_, most_bytes_;
};

// The most that one document of up to `tokens` tokens needs as a part, whatever its masks, its
// padding and the rows it wants.
DeviceRunBytes LongestDocumentBytes(
    int tokens,
    absl::FunctionRef<DeviceRunBytes(DeviceEncoderPart::Sequences)> most_bytes);

}  // namespace longview::models
