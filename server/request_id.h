// Request ids: the caller's x-request-id, or one of ours.
#pragma once

#include <string>
#include <string_view>

namespace longview::server {

// `given` if it is 1 to 128 visible ASCII characters, else 32 random hexadecimal digits.
// Thread-safe.
std::string RequestIdOr(std::string_view given);

}  // namespace longview::server
