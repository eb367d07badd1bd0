// A decode step of Transformer-LS on a device: the next token of each of some sequences through all
// layers, over a projection cache that lies in the device's memory. What the host's pass does
// (models/transformer_ls/pass.h), for the paper's schedule, as work handed to one stream: nothing
// waits and nothing is allocated.
//
// A row's bits depend on its sequence alone: products are RowProducts, attention is cut at places
// of the sequence (span/decode_plan.h).
//
// One thread at a time, the stream's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cache/cache_step.h"
#include "kernels/cuda/plugin_api.h"

namespace longview::kernels::cuda {

struct DecodeShape {
  int32_t width = 0;
  int32_t heads = 0;
  int32_t intermediate = 0;
  int32_t vocab = 0;
  int32_t window = 0;   // Keys of a token, itself included.
  int32_t segment = 0;  // l
  int32_t rank = 0;     // r
  bool pre_norm = false;
  RowActivation activation = RowActivation::kNone;
  DType dtype = DType::kFloat32;

  int32_t dim() const { return width / heads; }
  int32_t columns() const { return heads * rank; }
  int32_t projected() const { return 3 * width + columns(); }
};

// y = x W^T + b.
struct DecodeLinear {
  const void* weight;  // T [out, in]
  const float* bias;   // [out]
};

struct DecodeLayer {
  DecodeLinear project;  // Query, key, value and scores of segments: [3 * width + columns, width].
  DecodeLinear out;
  DecodeLinear expand;
  DecodeLinear contract;
  RowNorm norm1, norm2;
  RowNorm window_norm, segment_norm;
  // r_w_bias and r_r_bias [width], times sqrt(dim).
  const float* window_add;
  const float* distance_add;
  const void* window_table;   // T [heads, window, dim] by distance
  const void* segment_table;  // T [heads, segment_ids, dim] by distance in pages
};

// In the device's memory.
struct DecodeWeights {
  const float* words;  // [vocab, width], times sqrt(width)
  std::vector<DecodeLayer> layers;
  DecodeLinear logits;
  int64_t segment_ids;  // Entries of every segment_table: pages that the longest text has.
};

// The token that a sequence was appended last.
struct DecodeToken {
  int32_t id = 0;
  const CacheSequence* sequence = nullptr;
};

class DecodeStep {
 public:
  // Borrows everything but `tokens` until Run; `tokens` in the order of their
  // Append(CacheStep::kDecode) in `step`.
  // REQUIRES: the cache has BlockForm::kRows, elements of the shape's dtype, a window and pages of
  // (segment, rank), and sums of `columns` columns and two values of `dim`.
  DecodeStep(const DecodeShape& shape, const DecodeWeights& weights, const ProjectionCache& cache,
             const CacheStep& step, std::span<const DecodeToken> tokens);

  // Bytes of the lists that the host writes and the device reads, and of the device's buffers.
  size_t list_bytes() const { return list_bytes_; }
  size_t buffer_bytes() const { return buffer_bytes_; }

  // Writes the lists to `host`; the caller has them copied to `device` before they are read.
  void WriteLists(std::byte* host, std::byte* device);

  // Hands the step to the stream, behind the lists. `*logits`: [tokens, vocab] floats in `buffers`.
  // REQUIRES: WriteLists; 64-byte aligned memory.
  Status Run(const PluginApi& api, Stream* stream, std::byte* buffers, const float** logits) const;

 private:
  class Lists;
  struct Buffers;
  class Runner;

  // Where the device finds the lists.
  struct Placed {
    const int32_t* ids;  // [rows]
    const PoolRun* runs;
    const int32_t* closing;            // Of `runs`: those that end their segment.
    const CacheRowPlace* window_rows;  // [rows]
    const CacheRowPlace* page_rows;    // [closing * rank]
    const int32_t* window_limits;      // [rows] entries of the window's table that are read
    const int32_t* segment_limits;
    const int32_t* window_blocks;
    const int32_t* window_offsets;  // [rows], for absolute slots
    const int32_t* page_blocks;
    const int32_t* page_offsets;
    PlanView plan;
  };

  void PlanAttention();
  Placed PlaceLists(std::byte* host, std::byte* device, size_t* bytes) const;
  Buffers Carve(std::byte* memory, size_t* bytes) const;

  const DecodeShape shape_;
  const DecodeWeights& weights_;
  const ProjectionCache& cache_;
  const CacheStep& step_;
  const std::vector<DecodeToken> tokens_;
  std::vector<int32_t> closing_;
  int32_t most_segments_ = 0;  // Of all segment limits.
  Plan plan_;
  PlanCapacity capacity_;
  size_t list_bytes_ = 0, buffer_bytes_ = 0;
  Placed placed_ = {};
};

}  // namespace longview::kernels::cuda
