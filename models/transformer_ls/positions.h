// Relative positions of a Transformer-LS language model as tables of key-like rows.
//
//   window table   [h, w, dh]     row i of all heads = r_net pe(min(i, clamp))
//   segment table  [h, ids, dh]   row i of all heads = r_net_chunk pe(min(i, clamp)) + bias
//   pe(i)          sin(i * inv_freq) and cos(i * inv_freq), halves side by side
//
// Every table is kept twice: as rows for the executor's Dotted biases, which tiles of many rows
// read, and packed per head for the row products of decoding.
//
// A segment id grows with the text, so the segment tables reserve addresses for the longest
// one and are filled as far as anybody has read. Rows do not depend on how far that is.
// Cover belongs to the executor's thread; reading is safe beside nothing but itself.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/dense/row_product.h"
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

  // Makes ids below `ids` (at most the maximum) readable; in steps of kPackedIds.
  void Cover(int64_t ids);

  // Dotted tables; the window's adds r_r_bias to the query.
  kernels::Table Window(int layer) const;
  kernels::Table Segments(int layer) const;

  // One head's table as a weight: the window's [w, dh], and kPackedIds ids of segments [ids, dh]
  // that begin with `first`, a multiple of kPackedIds.
  static constexpr int64_t kPackedIds = 256;
  kernels::RowWeight WindowWeight(int layer, int head) const;
  kernels::RowWeight SegmentWeight(int layer, int head, int64_t first) const;

  int64_t covered() const { return covered_; }
  double bytes() const;  // Filled so far.

 private:
  // A layer's table [h, places, dh].
  struct Rows {
    Scratch memory;
    int64_t places = 0;
  };
  // The same entries of all layers and heads, packed side by side: decoding reads all of them.
  struct Packs {
    Scratch memory;  // [layers, h], a row weight each.
    int64_t entries = 0;
  };

  Rows MakeRows(int64_t places) const;
  Packs MakePacks(int64_t entries) const;
  kernels::RowWeight WeightOf(const Packs& packs, int layer, int head) const;
  // Entries [first, first + count) of one layer's table: linear(pe(entry)) + bias. `packs` begins
  // with entry `first`.
  void Fill(int layer, const DenseLayer& linear, int clamp, int64_t first, int64_t count,
            const Rows& table, const Packs& packs);
  // `values` [count, d] become entries first, first + 1, ...
  void Store(int layer, const std::vector<float>& values, int64_t first, int64_t count,
             const Rows& table, const Packs& packs);
  kernels::Table TableOf(const Rows& rows, int64_t entries) const;

  const LsLmConfig& config_;
  const LsLmWeights& weights_;
  const Compute compute_;
  const int64_t max_ids_;
  const kernels::ParallelFor& pool_;
  int64_t covered_ = 0;
  std::vector<Rows> windows_, segments_;  // Per layer, of the compute type.
  Packs window_packs_;
  std::vector<Packs> segment_packs_;  // kPackedIds ids each.
};

}  // namespace longview::models
