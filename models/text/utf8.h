// Positions in UTF-8 text. Offsets of answers are Unicode code points, memory is bytes.
// Thread-safe: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace longview::models {

// Number of code points. REQUIRES: valid UTF-8.
int64_t CodePoints(std::string_view text);

// The text with every maximal invalid part replaced by U+FFFD, as Python's errors="replace".
std::string ReplaceInvalidUtf8(std::string_view bytes);

// Length of a character at the end whose bytes are valid so far, but not all there; 0 if none.
size_t IncompleteUtf8Suffix(std::string_view bytes);

}  // namespace longview::models
