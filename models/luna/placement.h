// fairseq's positions of tokens (make_positions): those that are not masked count from pad + 1 on,
// wherever masked ones stand.
#pragma once

#include "kernels/span/band_planner.h"
#include "models/encoder/sequence.h"

namespace longview::models {

inline void PlaceLunaTokens(int pad, EncoderSequence& sequence) {
  int32_t position = pad;
  for (const uint8_t role : sequence.roles) {
    const bool masked = role == kernels::kMaskedToken;
    if (!masked) ++position;
    sequence.positions.push_back(masked ? pad : position);
  }
}

}  // namespace longview::models
