// Which inputs are pictures, by their first bytes.
//
// Thread-safe: pure functions of bytes and files.
#pragma once

#include <string>
#include <string_view>

namespace longview::client {

// "JPEG", "PNG" or "WebP", which the server decodes; "" for anything else.
std::string_view PictureFormat(std::string_view content);

// The same for the file at `path`, of which the first bytes are read; "" if it cannot be read.
std::string_view PictureFormatOfFile(const std::string& path);

}  // namespace longview::client
