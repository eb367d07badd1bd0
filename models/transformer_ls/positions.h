// Relative positions of a Transformer-LS language model as tables of key-like rows.
//
//   window table   [h, w, dh]     row i of all heads = r_net pe(min(i, clamp))
//   segment table  [h, ids, dh]   row i of all heads = r_net_chunk pe(min(i, clamp)) + bias
//   pe(i)          sin(i * inv_freq) and cos(i * inv_freq), halves side by side
//
// On the host every table is kept twice: as rows for the executor's Dotted biases, which tiles of
// many rows read, and packed per head for the row products of decoding. A segment id grows with the
// text, so the segment tables reserve addresses for the longest one and are filled as far as
// anybody has read. Rows do not depend on how far that is. A device has rows for the longest text.
// Cover belongs to the executor's thread; reading is safe beside nothing but itself.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/dense/row_product.h"
#include "models/dense/scratch.h"
#include "models/transformer_ls/config.h"
#include "models/transformer_ls/score_positions.h"
#include "models/transformer_ls/weights.h"

namespace longview::models {

// Entries [first, first + count): linear(pe(min(entry, clamp))) + bias, [count, d]; clamp 0: none.
// Throws what LibTorch throws.
std::vector<float> PositionRows(const DenseLayer& linear, std::span<const float> frequencies,
                                int clamp, int64_t first, int64_t count,
                                const kernels::ParallelFor& pool);
// Rows [count, heads * dim] head by head: [heads, count, dim].
std::vector<float> HeadRows(const std::vector<float>& rows, int heads, int dim);

class RelativeTables {
 public:
  // The tables that a device has. Borrows.
  RelativeTables(const LsLmConfig& config, const LsLmWeights& weights);
  // On the host, where `max_segment_ids` rows can be covered. Borrowed arguments outlive the
  // tables. Fills the window tables. Throws what LibTorch and the allocator throw.
  RelativeTables(const LsLmConfig& config, const LsLmWeights& weights, Compute compute,
                 int64_t max_segment_ids, const kernels::ParallelFor& pool);

  // Makes ids below `ids` (at most the maximum) readable; in steps of kPackedIds.
  void Cover(int64_t ids);
  // Bytes of the segment tables once so many ids are covered; 0 on a device. Thread-safe.
  int64_t SegmentBytes(int64_t ids) const;

  // The window's adds r_r_bias to the query.
  PositionTable Window(int layer) const;
  PositionTable Segments(int layer) const;

 private:
  static constexpr int64_t kPackedIds = 256;

  // A kind of tables, of all layers.
  struct Tables {
    std::vector<Scratch> rows;  // Per layer: [h, places, dh] of the compute type.
    int64_t places = 0;
    int64_t packed = 0;          // Entries of a pack.
    std::vector<Scratch> packs;  // [layers, h], a row weight each: decoding reads all of them.
    std::vector<std::vector<const std::byte*>> of_layer;  // [layer][pack]
  };

  Tables MakeTables(int64_t places, int64_t packed) const;
  size_t LayerPackBytes(int64_t packed) const;
  void AddPack(Tables& tables) const;
  // Entries [first, first + count), those of the last pack.
  void Fill(const DenseLayer& linear, int clamp, int64_t first, int64_t count, int layer,
            Tables& tables) const;
  PositionTable TableOf(const Tables& tables, int layer, int64_t entries) const;

  const LsLmConfig& config_;
  const LsLmWeights& weights_;
  const Compute compute_ = Compute::kFp32;
  const int64_t max_ids_ = 0;
  const kernels::ParallelFor* const pool_ = nullptr;  // Null on a device.
  int64_t covered_ = 0;
  Tables windows_, segments_;
};

}  // namespace longview::models
