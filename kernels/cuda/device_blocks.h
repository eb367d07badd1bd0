// A device's memory for the blocks of a cache: reserved as a whole when a model loads, copied on
// the stream that the model computes on, addressed by kernels.
#pragma once

#include <cstdint>

#include "kernels/cache/block_memory.h"
#include "kernels/cache/cache_step.h"
#include "kernels/cache/projection_cache.h"
#include "kernels/cuda/decoder_rows/token_api.h"
#include "kernels/cuda/plugin_api.h"

namespace longview::kernels::cuda {

// Used by the thread that uses the stream.
class DeviceBlocks final : public BlockMemory {
 public:
  // Borrows table and stream.
  DeviceBlocks(const PluginApi& api, int32_t device, Stream* stream)
      : api_(api), device_(device), stream_(stream) {}

  std::byte* Reserve(size_t bytes) override;
  // Waits for the stream: kernels that were handed over may still use the memory.
  void Return(std::byte* memory, size_t bytes) override;
  void Copy(std::byte* to, const std::byte* from, size_t bytes) override;
  // The pools keep the memory that admission gave them.
  void Release(std::byte*, size_t) override {}

  // Status of the first call that failed, but for Reserve; 0: none. A step that finds one is lost.
  Status status() const { return status_; }

 private:
  void Keep(Status status) {
    if (status_ == 0) status_ = status;
  }

  const PluginApi& api_;
  const int32_t device_;
  Stream* const stream_;
  Status status_ = 0;
};

// A projection cache in such memory as kernels address it, by functions of their arguments.
//
// One layer's part of a strip, for writing. REQUIRES: BlockForm::kRows, keys as wide as values.
CacheRows RowsOf(const ProjectionCache& cache, int strip, int layer);

// Place of a row as kernels address it.
CacheRowPlace PlaceOf(const ProjectionCache& cache, const CachePlace& place);

// Floats from the first layer's sums of an open segment to this one's.
int64_t StateShift(const CacheShape& cache, int layer);

}  // namespace longview::kernels::cuda
