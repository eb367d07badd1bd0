// Keys and values of places that a convolution leaves of maps (Wang et al. 2021, Pyramid Vision
// Transformer: spatial reduction), normalised by column, behind those of the global tokens.
#pragma once

#include <cstdint>
#include <span>

#include "models/feature_maps/map_tokens.h"
#include "models/ops/backend.h"

namespace longview::models {

// Added to the variance of an instance norm (torch.nn.InstanceNorm2d's default).
inline constexpr float kInstanceNormEps = 1e-5f;

struct MapReduction {
  std::span<const MapTokens> images;
  int side = 1;  // The convolution's, and its stride.
  int globals = 0;
  int64_t places = 0;  // All images'.
};

// A staged reduction. Borrows it.
struct ReductionRef {
  const MapReduction* maps = nullptr;
  // A device's.
  const int32_t* from = nullptr;         // [places, side^2] rows
  const int32_t* begins = nullptr;       // [images + 1] places
  const int32_t* keys = nullptr;         // [images] first keys of places
  const int32_t* globals = nullptr;      // [images * globals] rows
  const int32_t* global_keys = nullptr;  // [images * globals] keys that these become.
};
ReductionRef StageReduction(Backend& backend, const MapReduction& maps);

namespace ops {

struct ReduceMaps {
  ReductionRef maps;
  const Weight& reduce;     // [d, side * side * d]
  const Weight& key_value;  // [2d, d]
  Rows from;                // T [rows, d]
  Rows out;                 // SumType [globals + places, 2d]

  OpWork Work() const;
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace ops
}  // namespace longview::models
