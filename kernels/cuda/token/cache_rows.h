// A projection cache in a device's memory (device_blocks.h) as kernels address it.
//
// Functions of their arguments.
#pragma once

#include <cstdint>

#include "kernels/cache/cache_step.h"
#include "kernels/cache/projection_cache.h"
#include "kernels/cuda/span/span_call.h"
#include "kernels/cuda/token/token_api.h"

namespace longview::kernels::cuda {

// One layer's part of a strip, for writing. REQUIRES: BlockForm::kRows, keys as wide as values.
CacheRows RowsOf(const ProjectionCache& cache, int strip, int layer);

// The same, for attention; `blocks` and `offsets` on the device.
SpanSource BlocksOf(const ProjectionCache& cache, int strip, int layer, const int32_t* blocks,
                    const int32_t* offsets);

// A layer's places before the text: one block of equal rows, which every block of a paged source
// is.
struct ConstantBlock {
  void* k = nullptr;  // T [heads, 64, BlockPitch(dim)]
  void* v = nullptr;
};

// As a source of attention; `zeros` on the device, one for every 64 slots and for every sequence.
SpanSource ConstantBlocks(const ConstantBlock& block, int heads, const int32_t* zeros);

// Where a row goes.
CacheRowPlace PlaceOf(const ProjectionCache& cache, const CachePlace& place);

// The offset by which a table's blocks are looked up by absolute slots.
int32_t AbsoluteOffset(const CacheTable& table, size_t sequence);

// A table's block ids, at most `room` of them, and AbsoluteOffset of its sequences.
void WriteTable(const CacheTable& table, int64_t room, int32_t* blocks, int32_t* offsets);

// Floats from the first layer's sums of an open segment to this one's.
int64_t StateShift(const CacheShape& cache, int layer);

}  // namespace longview::kernels::cuda
