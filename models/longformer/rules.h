// What Longformer's front end must know of a configuration, wherever the layers run. Pure.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "models/encoder/facts.h"
#include "models/encoder/sequence.h"
#include "models/longformer/config.h"
#include "models/model.h"

namespace longview::models {

EncoderFacts LongformerFacts(const LongformerConfig& config);

// As SequenceRules.
absl::Status PlaceTokens(const LongformerConfig& config, const std::string& field,
                         EncoderSequence& sequence);
absl::Status MarkGlobals(const LongformerConfig& config, const std::string& field, Task task,
                         EncoderSequence& sequence);

}  // namespace longview::models
