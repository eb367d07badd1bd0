// Generation options that a model directory brings along.
// Thread-safe: a pure function.
#pragma once

#include "absl/status/statusor.h"
#include "models/directory/model_directory.h"
#include "models/generation.h"

namespace longview::models {

// longview.json's `generation` before generation_config.json; the generation keys of config.json
// count only where generation_config.json is absent, as in HuggingFace. Names that HuggingFace
// ignores are ignored in its files and refused in ours. INVALID_ARGUMENT names file and key; so
// does a setting of generation_config.json that changes the output and is not served.
absl::StatusOr<GenerationOptions> ReadGenerationDefaults(const ModelDirectory& directory);

}  // namespace longview::models
