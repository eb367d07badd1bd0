// Mixing of the tokens of a slice in place of attention between them (CST's `mlp` ablation): two
// linears over the places of a slice with a gelu between, the same for every channel.
#pragma once

#include <cstdint>

#include "models/cst/pool_slices.h"
#include "models/ops/backend.h"

namespace longview::models {

// Each weight is a row per place that is read; see kernels/pool/place_mix.h.
struct PlaceMixer {
  Table in, in_bias;    // [places, hidden], [1, hidden]
  Table out, out_bias;  // [hidden, places], [1, places]

  int64_t places() const { return in.rows(); }
  int64_t hidden() const { return in.width(); }
};

namespace ops {

// out = rows of `from` mixed within their slice, masked ones reading as zeros; rows of no slice
// become zeros.
struct MixSlices {
  const PlaceMixer& mixer;
  Rows from;  // T [rows, width]
  SlicesRef slices;
  Rows out;  // T [rows, width]; may be `from`.

  OpWork Work() const {
    return {.attention = 2 * from.elements() * static_cast<double>(mixer.hidden())};
  }
  void OnHost(HostBackend& host) const;
  void OnDevice(DeviceBackend& device) const;
};

}  // namespace ops
}  // namespace longview::models
