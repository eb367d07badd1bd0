// From a request to an encoder-decoder to the document its encoder reads and the start of the
// output: everything a client can get wrong is found here.
// Thread-safe: pure functions.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "models/generation/model/generation_item.h"
#include "models/generation/model/prompt.h"
#include "models/model.h"

namespace longview::models {

// The item without its cost. INVALID_ARGUMENT "field: value, limit". REQUIRES: front.documents.
absl::StatusOr<std::unique_ptr<GenerationItem>> PrepareSourced(const GeneratorFrontEnd& front,
                                                               const Request& request);

}  // namespace longview::models
