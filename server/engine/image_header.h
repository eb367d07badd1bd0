// The size that an encoded picture claims, for planning only: its decoder checks for itself.
#pragma once

#include <cstddef>
#include <string_view>

namespace longview::server {

// Width times height by the header of a PNG, JPEG or WebP file; 0 where there is none.
// Thread-safe: a pure function.
size_t HeaderPixels(std::string_view image);

}  // namespace longview::server
