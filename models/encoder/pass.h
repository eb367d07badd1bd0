// A forward of a text encoder over a ragged batch. The same instance may be staged again after
// sequences left.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "models/device/device_run.h"
#include "models/encoder/ragged_batch.h"
#include "models/forward/forward.h"

namespace longview::models {

// The rows that heads read beside a sequence's wanted ones, [count, H] fp32, on the host.
struct ExtraRowsView {
  const float* rows = nullptr;
  int64_t count = 0;
};
// Gives those of a sequence by its number in the batch.
using ExtraOf = absl::FunctionRef<ExtraRowsView(int sequence)>;

class EncoderPass : public Forward {
 public:
  using Sequences = RaggedBatch::Sequences;

  // The wanted rows, then the extra ones.
  std::vector<Rows> Results() const final { return {Wanted(), Extra()}; }

  // ---- After the last layer, fp32 ----
  // The wanted rows of all sequences, in their order.
  virtual Rows Wanted() const = 0;
  // Rows that heads read beside them: a summary, a class vector.
  virtual Rows Extra() const { return {}; }
  // The first of a sequence's wanted and extra rows, by its place in batch(), and the number of its
  // extra rows.
  virtual int64_t FirstWanted(int place) const = 0;
  virtual int64_t FirstExtra(int) const { return 0; }
  virtual int64_t ExtraRows(int) const { return 0; }

  // ---- Sequences that leave, on the host alone ----
  virtual RaggedBatch& batch() = 0;
  // Closes the gaps of those that were dropped from batch(): in the rows that layer `layer` reads
  // (none before layer 0), and in the plans, which are staged anew.
  virtual void LeaveDropped(int layer) = 0;
};

// The most that one document of up to `tokens` tokens needs as a part, whatever its masks, its
// padding and the rows it wants, by what `most_bytes` says of a batch: a device must have room for
// a text encoder's longest one.
DeviceRunBytes LongestDocumentBytes(
    int tokens, absl::FunctionRef<DeviceRunBytes(RaggedBatch::Sequences)> most_bytes);

}  // namespace longview::models
