// Percent-encoding, paths and query strings.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/http/message.h"

namespace longview::server {

// Nullopt if a '%' is not followed by two hexadecimal digits. `plus_is_space` as in queries
// and forms.
std::optional<std::string> PercentDecode(std::string_view text, bool plus_is_space);

// `path` with one slash wherever several follow one another: a base URL that ends with one joined
// with a path that begins with one.
std::string SingleSlashes(std::string_view path);

// "a=1&b=x%20y" in order; a name without '=' has an empty value. Nullopt as PercentDecode.
std::optional<HttpFields> ParseQuery(std::string_view query);

}  // namespace longview::server
