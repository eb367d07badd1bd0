// Positions of tokens that count from behind the pad's row, by the rules of RoBERTa's descendants.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "kernels/span/band_planner.h"
#include "models/encoder/sequence.h"

namespace longview::models {

// HuggingFace's create_position_ids_from_input_ids: tokens other than `pad` count from pad + 1 on,
// whatever is masked; pad itself stands at row pad. INVALID_ARGUMENT at `field` beyond a table of
// `positions` rows.
absl::Status PlaceBehindPad(int pad, int positions, const std::string& field,
                            EncoderSequence& sequence);

// fairseq's positions of tokens (make_positions): those that are not masked count from pad + 1 on,
// wherever masked ones stand.
inline void PlaceLunaTokens(int pad, EncoderSequence& sequence) {
  int32_t position = pad;
  for (const uint8_t role : sequence.roles) {
    const bool masked = role == kernels::kMaskedToken;
    if (!masked) ++position;
    sequence.positions.push_back(masked ? pad : position);
  }
}

}  // namespace longview::models
