// Separable convolutions over the tokens of feature maps (Wu et al. 2021, CvT: convolutional
// projections): a depthwise convolution of 3 x 3 taps, then a linear over channels.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/feature_maps/map_tokens.h"
#include "models/ops/backend.h"

namespace longview::models {

inline constexpr int kDepthwiseTaps = 9;

// The map has a border of zeros.
struct Separable {
  Table taps;  // [kDepthwiseTaps, C]
  Table bias;  // [1, C]
  Weight pointwise;
};

// Maps whose tokens see those beside them, and which token a row is: by image and row behind row0
// its row-major position, -1 for global ones.
struct MapNeighbours {
  std::span<const MapTokens> images;
  std::vector<std::shared_ptr<const std::vector<int32_t>>> positions;
};

// Staged maps. Borrows them.
struct NeighboursRef {
  const MapNeighbours* maps = nullptr;
  // A device's.
  const int32_t* taps = nullptr;     // [rows, kDepthwiseTaps] rows, see DepthwiseRows.
  const int32_t* globals = nullptr;  // [global_count] rows of global tokens.
  int64_t global_count = 0;
};
NeighboursRef StageNeighbours(Backend& backend, const MapNeighbours& maps);

namespace ops {

// out = the convolution of the batch's rows from `first` on; the linear alone treats global ones.
struct Convolve {
  NeighboursRef maps;
  const Separable& layer;
  // T rows, among which are the neighbours of the wanted ones. A device reads dense ones, of the
  // whole batch.
  Rows from;
  int64_t from0;                // Row of the batch that `from` begins with.
  int64_t first;                // First row of the batch that is wanted.
  Rows out;                     // T, or fp32; dense on a device, with an output's tail.
  bool copies_globals = false;  // Global rows become those of `from` instead.

  OpWork Work() const;
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace ops
}  // namespace longview::models
