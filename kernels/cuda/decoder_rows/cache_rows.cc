#include "kernels/cuda/decoder_rows/cache_rows.h"

#include "kernels/base/workspace.h"
#include "kernels/cuda/span/span_call.h"

namespace longview::kernels::cuda {

CacheRows RowsOf(const ProjectionCache& cache, int strip, int layer) {
  const CacheShape& shape = cache.shape();
  const Source source = cache.PagedSource(strip, layer, nullptr, nullptr);
  return {const_cast<void*>(source.k), const_cast<void*>(source.v), shape.kv_heads, shape.Dk,
          BlockPitch(shape.Dk)};
}

CacheRowPlace PlaceOf(const ProjectionCache& cache, const CachePlace& place) {
  return {place.block < 0 ? -1 : place.block * cache.shape().layers, place.slot};
}

int64_t StateShift(const CacheShape& cache, int layer) {
  const size_t state = AlignUp(PoolStateBytes(cache.pool_columns, cache.pool_widths));
  return layer * static_cast<int64_t>(state / sizeof(float));
}

}  // namespace longview::kernels::cuda
