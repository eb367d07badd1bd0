// Weighted means over segments of tokens: per column a softmax of given scores over the
// segment's tokens, then sums of one or two value tensors with those weights.
//
//   p[t, c] = softmax over t of scores[t, c];   out[segment, c, :] = sum of p[t, c] * value[t,
//   slice(c)]
//
// Serves the dynamic projection of Transformer-LS (Zhu et al. 2021, section 3.2: text, vision
// and language model), global rows of Longformer with folded projections and Luna's pack, both
// with values of full width.
//
// Columns are head-major: column c belongs to head c / columns_per_head and reads channels
// from head * head_stride of a value row, `width` of them. Full width: head_stride = 0.
//
// Bits of a segment depend on its scores and values alone: every sum runs over the tokens in
// order, whatever the batch and the threads. An empty or wholly masked segment gives zeros.
// Thread-safe; all memory is the caller's.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/base/parallel.h"
#include "kernels/base/workspace.h"
#include "kernels/span/kv_layout.h"

namespace longview::kernels {

struct PoolValue {
  const void* data = nullptr;  // [T, >= heads * head_stride + width], strides in elements.
  DType dtype = DType::kFloat32;
  int64_t row_stride = 0;
  int64_t head_stride = 0;
  int width = 0;         // Channels a column reads.
  float* out = nullptr;  // [segments, C, width], dense. Unused by PoolAppend.
};

struct PoolCall {
  const float* scores = nullptr;  // [T, C], natural units.
  int64_t score_stride = 0;
  int columns = 0;  // C.
  int columns_per_head = 1;
  const uint8_t* visible = nullptr;  // [T], 0 = left out; null: all visible.
  // Segment i is rows [offsets[i], offsets[i + 1]); one more entry than segments.
  std::span<const int32_t> offsets;
  std::span<const PoolValue> values;  // One or two.
};

// Scratch of PoolSegments: the weights of all tokens. Exact, pure.
WorkspaceBytes MeasurePool(const PoolCall& call);

// Pools whole segments.
// REQUIRES: `workspace` holds MeasurePool(call); columns % columns_per_head == 0.
void PoolSegments(const PoolCall& call, const Workspace& workspace, const ParallelFor& pool);

// Reference of PoolSegments in double precision, one thread, without workspace.
void PoolSegmentsRef(const PoolCall& call);

// An open segment: sums so far, relative to the largest score so far. Appending tokens one by
// one or many at a time gives the same bits. All float.
struct PoolState {
  float* m = nullptr;   // [C] largest score.
  float* s = nullptr;   // [C] sum of exp(score - m).
  float* sums[2] = {};  // Per value: [C, width], not divided by s.
};

// Bytes of a state's four arrays laid end to end; CarvePoolState points into such a block.
size_t PoolStateBytes(int columns, std::span<const int> widths);
PoolState CarvePoolState(std::byte* block, int columns, std::span<const int> widths);
void ResetPoolState(const PoolState& state, int columns, std::span<const int> widths);

// Appends the rows of segment i to states[i].
void PoolAppend(const PoolCall& call, std::span<const PoolState> states, const ParallelFor& pool);

// Writes the means of an open segment to out[value], [C, width] each; the state is kept.
void PoolMeans(const PoolState& state, int columns, std::span<const int> widths,
               std::span<float* const> out);

// PoolSegments in two halves, for values that never exist as a whole: the same bits. Thread-safe;
// all memory is the caller's.
//
// Softmax of the scores over each segment, [T, C] from the first row on. `weights` may be the
// scores' own memory if score_stride is C. No value is read.
void WeighSegments(const PoolCall& call, float* weights, const ParallelFor& pool);

// Adds the rows of the only segment, times `weights` [rows, C], to each value's out [C, width],
// which begins as zeros. Rows come in order, any number at a time. No score is read.
void AddWeighted(const PoolCall& call, const float* weights, const ParallelFor& pool);

}  // namespace longview::kernels
