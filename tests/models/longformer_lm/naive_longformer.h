// The autoregressive Longformer by its definition (models/longformer_lm/model.cc): double loops
// over tokens, heads and distances, in double precision.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tests/models/golden/edited_model.h"

namespace longview::models {

// Logits [T, V] of a text, from an edited masked LM's configuration and tensors (tied).
std::vector<double> NaiveLogits(const EditedModel& model, std::span<const int32_t> ids);

}  // namespace longview::models
