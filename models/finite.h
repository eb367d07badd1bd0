// Whether numbers are numbers.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace longview::models {

// Whether no value is NaN or infinite. A loop without branches, which compilers vectorise: callers
// look at whole tensors.
inline bool AllFinite(std::span<const float> values) {
  constexpr uint32_t kExponent = 0x7f800000u;
  uint32_t found = 0;
  for (const float value : values) {
    found |= static_cast<uint32_t>((std::bit_cast<uint32_t>(value) & kExponent) == kExponent);
  }
  return found == 0;
}

}  // namespace longview::models
