// Positions of RoBERTa and what descends from it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "models/encoder/sequence.h"

namespace longview::models {

// HuggingFace's create_position_ids_from_input_ids: tokens other than `pad` count from pad + 1 on,
// whatever is masked; pad itself stands at row pad. INVALID_ARGUMENT at `field` beyond a table of
// `positions` rows.
absl::Status PlaceBehindPad(int pad, int positions, const std::string& field,
                            EncoderSequence& sequence);

}  // namespace longview::models
