// Means over the rows of every image.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/cuda/pool/pool_api.h"
#include "models/feature_maps/map_tokens.h"
#include "models/ops/backend.h"

namespace longview::models {

// Staged images. Borrows them.
struct MeansRef {
  std::span<const MapTokens> images;
  // A device's.
  const kernels::cuda::PoolPiece* pieces = nullptr;  // [count]
  const int32_t* piece0 = nullptr;                   // [images + 1]
  int32_t count = 0;
  int64_t rows = 0;
};
MeansRef StageMeans(Backend& backend, std::span<const MapTokens> images);

namespace ops {

// results [images, d] = the mean of norm(x) over an image's rows; norm null: of x.
struct MapMeans {
  MeansRef means;
  Rows x;  // [rows, d] fp32
  const NormWeight* norm;
  float* results;

  OpWork Work() const { return {.rows = x.elements()}; }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace ops
}  // namespace longview::models
