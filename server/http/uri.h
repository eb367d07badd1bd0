// Percent-encoding and query strings.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/http/message.h"

namespace longview::server {

// Nullopt if a '%' is not followed by two hexadecimal digits. `plus_is_space` as in queries
// and forms.
std::optional<std::string> PercentDecode(std::string_view text, bool plus_is_space);

// "a=1&b=x%20y" in order; a name without '=' has an empty value. Nullopt as PercentDecode.
std::optional<HttpFields> ParseQuery(std::string_view query);

}  // namespace longview::server
