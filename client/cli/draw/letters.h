// Letters as dots, for labels on pictures: no font has to be installed, and a picture looks the
// same everywhere.
#pragma once

#include <array>
#include <cstdint>

namespace longview::client {

inline constexpr int kLetterDots = 5;   // Wide.
using Letter = std::array<uint8_t, 7>;  // Rows from the top, the left dot is bit 4.

const Letter& LetterOf(char c);

}  // namespace longview::client
