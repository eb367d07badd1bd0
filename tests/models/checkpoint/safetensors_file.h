// Builds safetensors files byte by byte, broken ones included.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace longview::models {

// Length prefix + header + data; the length may lie.
std::string SafetensorsBytes(std::string_view header, std::string_view data);
std::string SafetensorsBytes(std::string_view header, std::string_view data, uint64_t length);

}  // namespace longview::models
