// Checks of a tokenizer.json before the tokenizers crate reads it.
//
// The crate picks several components by their fields and not by their `type`, and skips what it
// does not know: a file can then load as something else. So every component's type must be one of
// those listed here, post-processors must have exactly their own fields, and settings that make
// encoding random are refused. A model without `type`, as in files before 2022, gets the one that
// its fields show.
// Thread-safe: pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/text/tokenizer_directory.h"
#include "nlohmann/json_fwd.hpp"

namespace longview::models {

// Adds what the file leaves implicit to `document`, appends to `claims` the ids that its
// template uses. INVALID_ARGUMENT begins with `origin` and names the component.
absl::Status CheckTokenizerJson(nlohmann::json& document, const std::string& origin,
                                std::vector<TokenClaim>& claims);

}  // namespace longview::models
