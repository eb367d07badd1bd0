// What global tokens see of a map that comes slice by slice: a softmax over all its tokens whose
// sums are kept open from slice to slice. The same bits however the map is cut.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/pool/segment_pool.h"
#include "models/dense/rowwise.h"
#include "models/dense/scratch.h"
#include "models/vil/context.h"

namespace longview::models {

// "T" is an element of the compute type; columns are head by head, global by global.
struct VilGlobalBuffers {
  float* queries = nullptr;      // [heads, g, head dim], scaled.
  float* scores = nullptr;       // [slice rows, heads g]
  float* means = nullptr;        // [heads g, head dim]
  float* thread_rows = nullptr;  // [threads, d]
  std::byte* state = nullptr;
};

VilGlobalBuffers CarveVilGlobals(const VilContext& context, const VilStage& stage, int64_t rows,
                                 Carver& carver);

// The global rows of one image in one block. Used by one thread; computes on the pool's.
// `qkv` is T [rows, 3d], the globals in front; its rows are read when they are appended.
class VilGlobalRows {
 public:
  VilGlobalRows(const VilContext& context, const VilStage& stage, const VilBias& bias,
                std::byte* qkv, const VilGlobalBuffers& buffers);

  // Begins with what the globals see of each other.
  void Begin();
  // Adds local tokens in rows [first, first + count).
  void Append(int64_t first, int64_t count);
  // Attention's outputs of the globals: T [g, d].
  void Finish(std::byte* out);

 private:
  // `among`: the rows are the globals.
  void Score(int64_t first, int64_t count, bool among);

  const VilContext& context_;
  const VilStage& stage_;
  const VilBias& bias_;
  const RowKernels& kernels_;
  std::byte* const qkv_;
  const VilGlobalBuffers& buffers_;
  const int64_t width_, head_dim_, globals_;
  const int columns_;
  const std::vector<float> zeros_;
  kernels::PoolState state_;
};

}  // namespace longview::models
