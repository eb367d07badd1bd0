#include "kernels/cuda/device_blocks.h"

#include "kernels/base/workspace.h"
#include "kernels/cuda/span/span_call.h"

namespace longview::kernels::cuda {

std::byte* DeviceBlocks::Reserve(size_t bytes) {
  void* memory = nullptr;
  return api_.allocate(device_, bytes, &memory) == 0 ? static_cast<std::byte*>(memory) : nullptr;
}

void DeviceBlocks::Return(std::byte* memory, size_t) {
  Keep(api_.synchronize(stream_));
  Keep(api_.release(device_, memory));
}

void DeviceBlocks::Copy(std::byte* to, const std::byte* from, size_t bytes) {
  Keep(api_.copy(stream_, to, from, bytes));
}

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
