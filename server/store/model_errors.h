// Errors of a model that a call cannot have: one message for one fault, whatever the
// call was.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace longview::server {

// NOT_FOUND, MODEL_NOT_FOUND: no model is called `name`; `names` are those there are, and the
// nearest of them is offered.
absl::Status ModelNotFound(std::string_view name, const std::vector<std::string>& names);

// NOT_FOUND, VERSION_NOT_FOUND: the model has version `has`, and `asked` was asked for.
absl::Status VersionNotFound(std::string_view name, std::string_view has, std::string_view asked);

}  // namespace longview::server
