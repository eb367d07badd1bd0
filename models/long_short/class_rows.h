// What class rows see of a map whose outputs come slice by slice: a softmax over their own keys and
// all outputs, whose sums are kept open. The same bits however the map is cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/pool/segment_pool.h"
#include "models/dense/rowwise.h"
#include "models/dense/scratch.h"
#include "models/long_short/map_attention.h"

namespace longview::models {

// Columns are head by head, class token by class token.
struct ClassRowBuffers {
  float* queries = nullptr;      // [h, g, C / h], scaled.
  float* scores = nullptr;       // [rows, h g]
  float* means = nullptr;        // [h g, C / h]
  float* thread_rows = nullptr;  // [threads, C]
  std::byte* state = nullptr;
};

// `rows`: the most that are appended at a time.
ClassRowBuffers CarveClassRows(const LongShortPattern& pattern, const ComputeContext& context,
                               int64_t rows, Carver& carver);

// Of one image in one block. Used by one thread; computes on the pool's. Borrows its arguments.
class ClassRows {
 public:
  ClassRows(const LongShortPattern& pattern, const ComputeContext& context,
            const ClassRowBuffers& buffers);

  // `qkv`: T [g, 3C] of the class rows, whose keys they all see.
  void Begin(std::byte* qkv);
  // `z`: T [count, C] outputs, which are keys and values.
  void Append(std::byte* z, int64_t count);
  // T [g, C]
  void Finish(std::byte* z);

 private:
  // Keys and values of `count` rows `stride` elements apart.
  void Add(std::byte* keys, std::byte* values, int64_t stride, int64_t count);

  const LongShortPattern& pattern_;
  const ComputeContext& context_;
  const ClassRowBuffers& buffers_;
  const RowKernels& kernels_;
  const int64_t width_, head_dim_, count_;
  const std::vector<float> zeros_;
  kernels::PoolState state_;
};

}  // namespace longview::models
