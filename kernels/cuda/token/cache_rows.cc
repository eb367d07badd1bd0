#include "kernels/cuda/token/cache_rows.h"

#include <algorithm>

#include "kernels/base/check.h"
#include "kernels/base/workspace.h"

namespace longview::kernels::cuda {

CacheRows RowsOf(const ProjectionCache& cache, int strip, int layer) {
  const CacheShape& shape = cache.shape();
  const Source source = cache.PagedSource(strip, layer, nullptr, nullptr);
  return {const_cast<void*>(source.k), const_cast<void*>(source.v), shape.kv_heads, shape.Dk,
          BlockPitch(shape.Dk)};
}

SpanSource BlocksOf(const ProjectionCache& cache, int strip, int layer, const int32_t* blocks,
                    const int32_t* offsets) {
  const CacheRows rows = RowsOf(cache, strip, layer);
  SpanSource source = {};
  source.k = rows.k;
  source.v = rows.v;
  source.layout = Layout::kPaged;
  source.kv_heads = rows.heads;
  source.block_table = blocks;
  source.seq_offset = offsets;
  return source;
}

SpanSource ConstantBlocks(const ConstantBlock& block, int heads, const int32_t* zeros) {
  SpanSource source = {};
  source.k = block.k;
  source.v = block.v;
  source.layout = Layout::kPaged;
  source.kv_heads = heads;
  source.block_table = source.seq_offset = zeros;
  return source;
}

CacheRowPlace PlaceOf(const ProjectionCache& cache, const CachePlace& place) {
  return {place.block < 0 ? -1 : place.block * cache.shape().layers, place.slot};
}

int32_t AbsoluteOffset(const CacheTable& table, size_t sequence) {
  return table.offsets[sequence] - table.first_block[sequence];
}

void WriteTable(const CacheTable& table, int64_t room, int32_t* blocks, int32_t* offsets) {
  KERNEL_CHECK(std::ssize(table.blocks) <= room);
  std::ranges::copy(table.blocks, blocks);
  for (size_t s = 0; s < table.first_block.size(); ++s) offsets[s] = AbsoluteOffset(table, s);
}

int64_t StateShift(const CacheShape& cache, int layer) {
  const size_t state = AlignUp(PoolStateBytes(cache.pool_columns, cache.pool_widths));
  return layer * static_cast<int64_t>(state / sizeof(float));
}

}  // namespace longview::kernels::cuda
