// A request for the chunks of a text as the items that answer it.
// Thread-safe: pure functions.
#pragma once

#include "absl/status/statusor.h"
#include "models/encoder/prepare.h"
#include "models/model.h"

namespace longview::models {

// Late chunking (one forward over the text, pooled chunk by chunk) where the text fits and parts
// can be pooled; windows where it does not fit; where parts cannot be pooled, each chunk's text is
// an item of its own. INVALID_ARGUMENT names field, value and limit.
absl::StatusOr<ChunkPlan> PlanTextChunks(const EncoderFrontEnd& front, const Request& request);

}  // namespace longview::models
