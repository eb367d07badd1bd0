// Zero memory as attention sources: every place before the text has the same key and value, so one
// block of 64 equal rows stands for all of them, however many the block table names.
// Immutable: thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/span/executor.h"
#include "kernels/span/schedule_planner.h"
#include "models/dense/scratch.h"
#include "models/transformer_ls/config.h"
#include "models/transformer_ls/weights.h"

namespace longview::models {

// The block of 64 rows like `row` [heads, head_dim], as a device reads it: [heads, 64, pitch].
std::vector<float> ZeroRowBlock(const std::vector<float>& row, int head_dim, int pitch);

// Entries of a list of blocks that names the one block for every place that a token may see.
inline int64_t ZeroEntries(const LsLmConfig& config) {
  const int slots = std::max(config.window, config.memory / config.segment * config.rank);
  return slots / kernels::kBlockSlots + 1;
}

class ZeroBlocks {
 public:
  // Blocks of the weights' device, or in the host's memory of the type `blocks`. The weights
  // outlive the blocks. REQUIRES: weights.zero has a row per layer. Throws std::bad_alloc.
  ZeroBlocks(const LsLmConfig& config, const LsLmWeights& weights, kernels::DType blocks);

  // Constant segments or window places. `zeros`, where the backend reads them: ZeroEntries, and one
  // for every sequence of the call.
  kernels::Source Of(kernels::ScheduleSource source, int layer, const int32_t* zeros) const;

 private:
  const void* Block(int layer, LsZeroPart part) const;

  const LsLmWeights& weights_;
  kernels::KvLayout layout_;
  size_t block_bytes_;  // All heads of one block.
  Scratch data_;        // [layer][part]; none on a device.
};

}  // namespace longview::models
