// PoolSegments in two halves, for values that never exist as a whole. The same bits.
// Thread-safe; all memory is the caller's.
#pragma once

#include "kernels/base/parallel.h"
#include "kernels/pool/segment_pool.h"

namespace longview::kernels {

// Softmax of the scores over each segment, [T, C] from the first row on. `weights` may be the
// scores' own memory if score_stride is C. No value is read.
void WeighSegments(const PoolCall& call, float* weights, const ParallelFor& pool);

// Adds the rows of the only segment, times `weights` [rows, C], to each value's out [C, width],
// which begins as zeros. Rows come in order, any number at a time. No score is read.
void AddWeighted(const PoolCall& call, const float* weights, const ParallelFor& pool);

}  // namespace longview::kernels
