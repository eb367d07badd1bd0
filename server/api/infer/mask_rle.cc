#include "server/api/infer/mask_rle.h"

#include <nlohmann/json.hpp>

namespace longview::server {

std::string CocoRle(std::span<const uint32_t> runs, int height, int width) {
  std::string counts;
  for (size_t i = 0; i < runs.size(); ++i) {
    int64_t value = runs[i];
    if (i > 2) value -= runs[i - 2];
    for (bool more = true; more;) {
      int group = static_cast<int>(value & 31);
      value >>= 5;
      more = (group & 16) != 0 ? value != -1 : value != 0;
      if (more) group |= 32;
      counts.push_back(static_cast<char>(group + 48));
    }
  }
  return nlohmann::ordered_json{{"size", {height, width}}, {"counts", counts}}.dump();
}

void AppendMask(std::span<const uint32_t> runs, int height, int width,
                std::vector<std::byte>& out) {
  const size_t first = out.size();
  out.resize(first + static_cast<size_t>(height) * width);
  int64_t at = 0;
  bool inside = false;
  for (const uint32_t run : runs) {
    for (int64_t i = at; inside && i < at + run; ++i) {
      out[first + static_cast<size_t>(i % height * width + i / height)] = std::byte{1};
    }
    at += run;
    inside = !inside;
  }
}

}  // namespace longview::server
