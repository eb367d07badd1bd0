// A projection cache in a device's memory (device_blocks.h) as kernels address it.
//
// Functions of their arguments.
#pragma once

#include <cstdint>

#include "kernels/cache/cache_step.h"
#include "kernels/cache/projection_cache.h"
#include "kernels/cuda/decoder_rows/token_api.h"

namespace longview::kernels::cuda {

// One layer's part of a strip, for writing. REQUIRES: BlockForm::kRows, keys as wide as values.
CacheRows RowsOf(const ProjectionCache& cache, int strip, int layer);

// Where a row goes.
CacheRowPlace PlaceOf(const ProjectionCache& cache, const CachePlace& place);

// Floats from the first layer's sums of an open segment to this one's.
int64_t StateShift(const CacheShape& cache, int layer);

}  // namespace longview::kernels::cuda
