#include <vector>

#include "models/layers/span_rows.h"
#include "models/ops/cache_rows.h"
#include "models/ops/host_backend.h"

namespace longview::models {

BlocksRef StageBlocks(Backend& backend, std::span<const int32_t> blocks,
                      std::span<const int32_t> offsets) {
  return {backend.List(blocks), backend.List(offsets)};
}

kernels::Source CachedSource(const Backend& backend, const StripRef& strip,
                             const BlocksRef& blocks) {
  if (strip.cache != nullptr) {
    return strip.cache->PagedSource(strip.strip, strip.layer, blocks.blocks, blocks.offsets);
  }
  kernels::Source source;
  source.dtype = backend.block_type();
  source.layout = kernels::Layout::kPaged;
  source.kv_heads = strip.heads;
  return source;
}

namespace ops {

void Store::OnHost(HostBackend& host) const {
  if (!host.Runs()) return;
  kernels::ProjectionCache::Rows rows;
  rows.k = keys.data;
  rows.v = values.data;
  rows.dtype = SpanType(host.compute());
  rows.k_row_stride = keys.stride;
  rows.v_row_stride = values.stride;
  rows.k_head_stride = keys.width / strip.heads;
  rows.v_head_stride = values.width / strip.heads;
  strip.cache->Write(strip.strip, strip.layer, places.host, rows, host.PoolFor(keys.count));
}

void Load::OnHost(HostBackend& host) const {
  if (!host.Runs()) return;
  std::vector<float> row(static_cast<size_t>(keys.width));
  for (size_t i = 0; i < places.host.size(); ++i) {
    if (places.host[i].block < 0) continue;
    strip.cache->ReadKeys(strip.layer, places.host[i], row.data());
    host.kernels().narrow(row.data(), keys.width, keys.Row(static_cast<int64_t>(i)));
  }
}

}  // namespace ops
}  // namespace longview::models
