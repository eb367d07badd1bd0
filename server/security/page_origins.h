// The origins of web pages that may call, as a flag lists them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace longview::server {

// The origins of "*", or of a comma list such as "https://name, http://name:3000": in lower case
// and without a scheme's usual port, as browsers write them. INVALID_ARGUMENT names the one that is
// none and what is expected.
absl::StatusOr<std::vector<std::string>> ParsePageOrigins(std::string_view list);

}  // namespace longview::server
