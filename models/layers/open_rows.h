// A few rows that see all tokens of a map which comes slice by slice: a softmax over every token's
// key, whose sums are kept open from slice to slice. The same bits however the map is cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/pool/segment_pool.h"
#include "models/dense/rowwise.h"
#include "models/dense/scratch.h"
#include "models/layers/compute_context.h"

namespace longview::models {

// "T" is an element of the compute type; C channels of h heads, g rows; columns are head by head,
// row by row.
struct OpenRowsShape {
  int64_t rows = 0;   // g
  int64_t heads = 1;  // h
  int64_t width = 0;  // C
  float scale = 1;    // Scale of the queries.

  int64_t head_dim() const { return width / heads; }
  int64_t columns() const { return heads * rows; }
};

struct OpenRowsBuffers {
  float* queries = nullptr;      // [h, g, C / h], scaled.
  float* scores = nullptr;       // [keys, h g]
  float* means = nullptr;        // [h g, C / h]
  float* thread_rows = nullptr;  // [threads, C]
  std::byte* state = nullptr;
};

// `keys`: the most that are appended at a time.
OpenRowsBuffers CarveOpenRows(const OpenRowsShape& shape, const ComputeContext& context,
                              int64_t keys, Carver& carver);

// `count` keys and values, T [C] each, `stride` elements apart.
struct OpenRowsKeys {
  std::byte* keys = nullptr;
  std::byte* values = nullptr;
  int64_t stride = 0;
  int64_t count = 0;
};

// Added to the score of head h, row j and key i: data[h head + j row + i key]. Null: nothing.
struct OpenRowsBias {
  const float* data = nullptr;
  int64_t head = 0, row = 0, key = 0;
};

// The rows of one image in one block. Used by one thread; computes on the pool's. Borrows the
// context and the buffers' memory.
class OpenRows {
 public:
  OpenRows(const OpenRowsShape& shape, const ComputeContext& context,
           const OpenRowsBuffers& buffers);

  // `queries`: T [C] each, `stride` elements apart. Forgets what was appended before.
  void Begin(std::byte* queries, int64_t stride);
  void Append(const OpenRowsKeys& keys, const OpenRowsBias& bias = {});
  // Writes T [g, C].
  void Finish(std::byte* out);

 private:
  void Score(const OpenRowsKeys& keys, const OpenRowsBias& bias);

  const OpenRowsShape shape_;
  const ComputeContext& context_;
  const OpenRowsBuffers buffers_;
  const RowKernels& kernels_;
  const std::vector<float> zeros_;
  kernels::PoolState state_;
};

}  // namespace longview::models
