// The known name that is nearest to a mistyped one, for error texts. Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace longview::server {

// "; did you mean <before><name>?" with the name of fewest changed letters, "" if none is near. The
// names' order decides between equals.
std::string DidYouMean(std::string_view before, std::string_view mistyped,
                       std::span<const std::string_view> names);

}  // namespace longview::server
