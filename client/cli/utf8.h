// UTF-8 validity, as protobuf and the server judge it.
//
// Thread-safe: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace longview::client {

// Byte offset of the first sequence that is not UTF-8 (overlong forms, surrogates and code points
// above U+10FFFF included); nullopt if there is none.
std::optional<size_t> FirstInvalidUtf8(std::string_view text);

// The text with U+FFFD in place of each maximal invalid part (Unicode's recommended practice,
// the same as Python's errors="replace").
std::string ReplaceInvalidUtf8(std::string_view text);

}  // namespace longview::client
