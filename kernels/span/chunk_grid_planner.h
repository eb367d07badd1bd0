// Two-dimensional sliding chunks with global tokens: Vision Longformer (Zhang et al. 2021,
// section 3; microsoft/vision-longformer, attention type longformerhand).
//
// A local token sees the global tokens and the real tokens of its own w x w chunk and the 8
// chunks around it, one softmax over all. Global tokens see everything. An image's rows are
// [globals | local tokens in ChunkMap order]; q, k, v and out share them.
//
// Sources: 0 globals, 1 local tokens, and for the cyclic rule 2: a tensor whose row 0 is zero.
// Tables (all Added): 0 [H, 2 g]: g2l[0] then g2l[1]; 1 [H, g * g]: g2g; 2 + t, the expanded table
// t of ChunkImage::table, [H, entries]: entry e = local table row bias_rows[t][e].
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/span/plan.h"

namespace longview::kernels {

enum class ChunkRule {
  kChunks = 0,  // Whole chunks, clipped at the border; every published model.
  kExact = 1,   // Only keys at most w rows and w columns away.
  kCyclic = 2,  // Chunks wrap around; padding reached by wrapping counts as zero keys.
};

struct ChunkPattern {
  int32_t heads = 1;
  int32_t chunk = 1;  // w.
  int32_t globals = 0;
  ChunkRule rule = ChunkRule::kChunks;
  bool own_chunk_only = false;  // MODE -1.
  bool only_global = false;     // Local tokens see the globals only, without bias.
  bool bias = false;
  // Rows that the call computes, local and global: with shared projections both in one call.
  bool local_rows = true;
  bool global_rows = true;
  int32_t tile_rows = 48;
};

struct ChunkImage {
  int32_t row0 = 0;
  int32_t rows = 1;  // Rows of the feature map.
  int32_t cols = 1;
  int32_t table = 0;  // Numbered without gaps as images come. Images of one size may share theirs.
};

struct ChunkGridPlan {
  Plan plan;
  // (dx + 2w - 1) * (4w - 1) + dy + 2w - 1 for query minus key (dx, dy), per table and entry. What
  // a table holds is a function of its images' sizes.
  std::vector<std::vector<int32_t>> bias_rows;
};

ChunkGridPlan PlanChunkGrid(const ChunkPattern& pattern, std::span<const ChunkImage> batch);

}  // namespace longview::kernels
