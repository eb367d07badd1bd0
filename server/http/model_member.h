// Which model a body is for, where it may be left out.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace longview::server {

// The member `model` of an object, else that field of the query; empty if neither is there.
// INVALID_ARGUMENT if it is no string or longer than a name can be.
absl::Status ReadModelName(const nlohmann::json& body, std::string_view query, std::string* model);

}  // namespace longview::server
