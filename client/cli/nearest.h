// The known name that is nearest to a mistyped one.
// Thread-safe: a pure function.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace longview::client {

// "; did you mean <before><name>?" with the name that is nearest, "" if none is near.
std::string DidYouMean(std::string_view before, std::string_view mistyped,
                       const std::vector<std::string>& names);

}  // namespace longview::client
