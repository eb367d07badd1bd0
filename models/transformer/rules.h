// The facts that a family of plain transformer layers gives the shared part of its encoder, and the
// places of its tokens.
#pragma once

#include <string>

#include "models/encoder/facts.h"
#include "models/encoder/sequence.h"
#include "models/transformer/config.h"

namespace longview::models {

EncoderFacts FactsOfTransformer(const std::string& family, const TransformerConfig& config);

// The token's index in its document.
void PlaceByIndex(EncoderSequence& sequence);

}  // namespace longview::models
