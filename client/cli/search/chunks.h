// Pieces of a text that a search can point at.
//
// Thread-safe: pure functions.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace longview::client {

// Whole lines; the first and the last of them hold a letter or a digit.
struct Chunk {
  size_t begin = 0, end = 0;          // Bytes of the text, without the last line's end.
  int first_line = 0, last_line = 0;  // From 1, both included.
};

// Cuts before lines that begin a definition or a section: not indented, after a blank line; within
// long ones at any blank line; else wherever a chunk has grown to its most. Lines without a letter
// or a digit at the ends of a chunk belong to none, so a text may have no chunks. A line longer
// than a chunk may be is a chunk of its own.
std::vector<Chunk> CutIntoChunks(std::string_view text);

}  // namespace longview::client
