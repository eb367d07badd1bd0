// Runs of tokens become one row each: their mean or their channel-wise maximum. The slice
// embeddings of the Composite Slice Transformer (Lee et al. 2023, section 3: the mean of the real
// tokens, footnote 1; the maximum of table 8).
//
// Every channel is one chain over the tokens in order, so a run that arrives in several pieces, or
// token by token, has the bits of the whole one. Thread-safe; all memory is the caller's.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/base/parallel.h"
#include "kernels/span/kv_layout.h"

namespace longview::kernels {

enum class SlicePooling { kMean, kMax };

// A run of rows, or one piece of it.
struct SlicePiece {
  int32_t row0 = 0;
  int32_t rows = 0;
  // false: `out` holds what the pieces before left there.
  bool begins = true;
  // kMean: the sum is divided by it after this piece; 0: `out` stays a sum, to be gone on with.
  int32_t divisor = 0;
  float* out = nullptr;  // [channels]. A run without visible rows: zeros.
};

struct SlicePoolCall {
  SlicePooling pooling = SlicePooling::kMean;
  const void* rows = nullptr;  // [T, channels] of dtype.
  DType dtype = DType::kFloat32;
  int64_t row_stride = 0;  // Elements.
  int channels = 0;
  const uint8_t* visible = nullptr;  // [T], 0 = left out; null: all visible.
  std::span<const SlicePiece> pieces;
};

// REQUIRES: pieces have different `out`; a piece that does not begin its run had a visible row
// before it.
void PoolSlices(const SlicePoolCall& call, const ParallelFor& pool);

// Reference of PoolSlices, in double precision within a piece, one thread.
void PoolSlicesRef(const SlicePoolCall& call);

}  // namespace longview::kernels
