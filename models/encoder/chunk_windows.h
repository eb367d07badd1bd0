// Windows over a text that is longer than a model reads at once, and which of them each chunk is
// read in.
// Thread-safe: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/model.h"

namespace longview::models {

struct WindowLayout {
  std::vector<TokenRange> windows;  // Ranges of the text's tokens, each with a chunk.
  std::vector<int32_t> window_of;   // For each chunk.
};

// Windows of `length` tokens that share `overlap` with the next one, from the first of `tokens` to
// the last. A chunk is read in the window where it lies deepest: where the nearer end of the window
// that is not the text's own is farthest. Chunks that lie whole in none of them get further windows
// with as many of them as fit, in the middle. Windows without a chunk are left out.
// REQUIRES: 0 <= overlap < length < tokens; chunks are at most `length` tokens long.
WindowLayout LayWindows(int32_t tokens, int32_t length, int32_t overlap,
                        std::span<const TokenRange> chunks);

}  // namespace longview::models
