// Zero memory as attention sources: every place before the text has the same key and value, so one
// block of 64 equal rows stands for all of them, however many the block table names.
// Immutable: thread-safe.
#pragma once

#include <vector>

#include "kernels/span/executor.h"
#include "models/dense/scratch.h"
#include "models/transformer_ls/config.h"
#include "models/transformer_ls/weights.h"

namespace longview::models {

class ZeroBlocks {
 public:
  // REQUIRES: weights.zero has a row per layer. Throws std::bad_alloc.
  ZeroBlocks(const LsLmConfig& config, const LsLmWeights& weights, kernels::DType blocks);

  // `sequence_offsets`: a zero for every sequence of the call, borrowed.
  kernels::Source Segments(int layer, const std::vector<int32_t>& sequence_offsets) const;
  kernels::Source Window(int layer, const std::vector<int32_t>& sequence_offsets) const;

 private:
  enum Part { kWindowKey, kWindowValue, kSegmentKey, kSegmentValue, kParts };

  kernels::Source MakeSource(int layer, Part key, Part value,
                             const std::vector<int32_t>& sequence_offsets) const;
  std::byte* Block(int layer, Part part) const {
    return data_.data() + (layer * kParts + part) * block_bytes_;
  }

  kernels::KvLayout layout_;
  size_t block_bytes_;          // All heads of one block.
  std::vector<int32_t> table_;  // Names block 0 for every 64 slots.
  Scratch data_;                // [layer][part]
};

}  // namespace longview::models
