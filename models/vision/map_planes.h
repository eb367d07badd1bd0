// Maps of tokens as planes, one per channel.
#pragma once

#include <cstdint>
#include <span>

#include "models/vision/make_tokens.h"

namespace longview::models {

// A map that is wanted as planes, [d, tokens].
struct WantedMap {
  int image = 0;       // Index of the image among the maps.
  int64_t token0 = 0;  // First token of the image among those of all.
  int64_t tokens = 0;
  int64_t out0 = 0;  // Floats of the results.
};

// Staged maps. Borrows them.
struct PlanesRef {
  std::span<const WantedMap> maps;
  // A device's.
  const kernels::cuda::PlaneImage* images = nullptr;
  int64_t most = 0;  // Tokens of the largest map.
};
PlanesRef StagePlanes(Backend& backend, std::span<const WantedMap> maps);

namespace ops {

struct MapPlanes {
  const TokensRef& tokens;
  PlanesRef wanted;
  Rows x;  // [rows, d] fp32
  float* results;

  OpWork Work() const { return {}; }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace ops
}  // namespace longview::models
