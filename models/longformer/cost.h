// Operations of a document in closed form.
#pragma once

#include "models/encoder/sequence.h"
#include "models/encoder/work.h"
#include "models/longformer/config.h"

namespace longview::models {

// Per layer 4 n H^2 for local projections and output, 2 n H I, 2 H per visible pair; global rows
// folded (2 g n H A) or projected (2 n H^2 more); the last layer for the wanted rows only.
EncoderWork WorkOf(const LongformerConfig& config, const EncoderSequence& sequence);

}  // namespace longview::models
