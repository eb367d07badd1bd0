// Relative positions of a Transformer-LS language model as tables of key-like rows: what the
// executor's Dotted biases and the decoder's position scores read.
//
//   window table   [w, d]     row i = r_net pe(min(i, clamp))
//   segment table  [ids, d]   row i = r_net_chunk pe(min(i, clamp)) + bias
//   pe(i)          sin(i * inv_freq) and cos(i * inv_freq), halves side by side
//
// A segment id grows with the text, so the segment tables reserve addresses for the longest
// one and are filled as far as anybody has read. Rows do not depend on how far that is.
// Cover belongs to the executor's thread; reading is safe beside nothing but itself.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/span/executor.h"
#include "models/dense/scratch.h"
#include "models/transformer_ls/config.h"
#include "models/transformer_ls/weights.h"

namespace longview::models {

class RelativeTables {
 public:
  // Borrowed arguments outlive the tables. `max_segment_ids` rows can be covered. Fills the window
  // tables. Throws what LibTorch and the allocator throw.
  RelativeTables(const LsLmConfig& config, const LsLmWeights& weights, Compute compute,
                 int64_t max_segment_ids, const kernels::ParallelFor& pool);

  // Makes ids below `ids` (at most the maximum) readable; steps of a few hundred rows.
  void Cover(int64_t ids);

  // Dotted tables; the window's adds r_r_bias to the query.
  kernels::Table Window(int layer) const;
  kernels::Table Segments(int layer) const;

  int64_t covered() const { return covered_; }
  double bytes() const;  // Filled so far.

 private:
  // Rows [first, last) of one table: linear(pe(row)) + bias.
  void Fill(const DenseLayer& linear, int clamp, int64_t first, int64_t last, std::byte* table);
  kernels::Table TableOf(const Scratch& block, int64_t entries) const;

  const LsLmConfig& config_;
  const LsLmWeights& weights_;
  const Compute compute_;
  const int64_t max_ids_;
  const kernels::ParallelFor& pool_;
  int64_t covered_ = 0;
  std::vector<Scratch> windows_, segments_;  // Per layer, rows of the compute type.
};

}  // namespace longview::models
