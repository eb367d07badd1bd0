#include "tests/models/checkpoint/safetensors_file.h"

namespace longview::models {

std::string SafetensorsBytes(std::string_view header, std::string_view data) {
  return SafetensorsBytes(header, data, header.size());
}

std::string SafetensorsBytes(std::string_view header, std::string_view data, uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(length >> (8 * i) & 0xff));
  bytes.append(header).append(data);
  return bytes;
}

}  // namespace longview::models
