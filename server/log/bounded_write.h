// Writing to a descriptor whose reader may have stopped: a full pipe, a paused terminal.
#pragma once

#include <string_view>

#include "absl/time/time.h"

namespace longview::server {

// Writes as much of `text` as the descriptor takes within `patience`, without blocking beyond it;
// zero writes only what fits at once. Returns the bytes that need no further attempt: all of them
// if the descriptor is closed or broken. Never changes the descriptor's flags, which other
// processes share. Thread-safe; pieces of more than 4 KiB may mix with other writers' text.
size_t BoundedWrite(int descriptor, std::string_view text, absl::Duration patience);

}  // namespace longview::server
