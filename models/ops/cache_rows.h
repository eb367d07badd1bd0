// Rows over a KV cache: keys and values of one layer's part of a strip.
#pragma once

#include "kernels/cache/projection_cache.h"
#include "kernels/cuda/decoder_rows/token_api.h"
#include "models/ops/backend.h"

namespace longview::models {

// One layer's part of a strip of a KV cache. Borrowed; `cache` null while a forward is counted
// before there is one.
struct StripRef {
  const kernels::ProjectionCache* cache = nullptr;
  int strip = 0;
  int layer = 0;
  int heads = 0;  // Key heads.
};

// Staged blocks of a strip, by sequence, in the memory that the backend reads.
struct BlocksRef {
  const int32_t* blocks = nullptr;
  const int32_t* offsets = nullptr;  // Slot j of sequence s lies in block offsets[s] + j / 64.
};
BlocksRef StageBlocks(Backend& backend, std::span<const int32_t> blocks,
                      std::span<const int32_t> offsets);

// Staged places of rows in a strip.
struct PlacesRef {
  std::span<const kernels::CachePlace> host;
  const kernels::cuda::CacheRowPlace* device = nullptr;
};
// `cache` null: places are counted.
PlacesRef StagePlaces(Backend& backend, const kernels::ProjectionCache* cache,
                      std::span<const kernels::CachePlace> places);

// Keys and values of a strip, as a source of attention.
kernels::Source CachedSource(const Backend& backend, const StripRef& strip,
                             const BlocksRef& blocks);

namespace ops {

// Row i of keys and values goes to places[i].
struct Store {
  const StripRef& strip;
  Rows keys, values;  // T [rows, heads * D], heads side by side; equal strides.
  const PlacesRef& places;

  OpWork Work() const { return {}; }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

// Row i of `keys` = the keys at places[i]; without a place it stays as it is.
struct Load {
  const StripRef& strip;
  const PlacesRef& places;
  Rows keys;  // T

  OpWork Work() const { return {}; }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace ops
}  // namespace longview::models
