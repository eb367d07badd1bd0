// A linear over the places of a run of tokens, the same for every channel:
//
//   out[k, c] = bias[k] + sum over j of weights[k, j] x[j, c]
//
// Two of them with an activation between make the `mlp` local mixer of the Composite Slice
// Transformer (Lee et al. 2023, table 8).
//
// Sums run over the places in order. Thread-safe; one call is one thread's work.
#pragma once

#include <cstdint>

#include "kernels/span/kv_layout.h"

namespace longview::kernels {

struct PlaceMix {
  // [places, outputs]: the row of place j holds its weight in every output, so that a run shorter
  // than the weights' places just ends earlier: absent places read as zeros.
  const float* weights = nullptr;
  const float* bias = nullptr;  // [outputs]
  int outputs = 0;              // Row stride of `weights`.
  int wanted = 0;               // Only the first `wanted` of them are computed.

  const void* rows = nullptr;  // x [places, channels] of dtype.
  DType dtype = DType::kFloat32;
  int64_t row_stride = 0;            // Elements.
  const uint8_t* visible = nullptr;  // [places], 0 = reads as zeros; null: all visible.
  int places = 0;                    // At most those of `weights`.
  int channels = 0;

  float* out = nullptr;  // [wanted, channels]; not `rows`.
  int64_t out_stride = 0;
};

void MixPlaces(const PlaceMix& mix);

// Reference of MixPlaces in double precision.
void MixPlacesRef(const PlaceMix& mix);

}  // namespace longview::kernels
