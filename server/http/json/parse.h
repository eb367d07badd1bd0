// JSON bodies into values, with the limits a server needs.
//
// Stricter than nlohmann::json::parse: bounded depth and memory, no member twice. Members that are
// null are left out, in objects of any depth. Thread-safe.
//
// Long arrays of numbers arrive as nlohmann *binary* values, which no JSON text can produce
// otherwise: subtype kInt64Array or kFloat64Array, the elements in host byte order. Read
// arrays through json/values.h, which knows both forms.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace longview::server {

inline constexpr int kMaxJsonDepth = 64;
inline constexpr uint64_t kInt64Array = 1;
inline constexpr uint64_t kFloat64Array = 2;

// Bytes that values may always take: few bytes of text may become many.
inline constexpr size_t kLeastJsonBytes = size_t{1} << 20;

// INVALID_ARGUMENT says what is wrong and at which byte. Values that would take more than
// `max_bytes` of memory, or than 16 times their text (but kLeastJsonBytes in any case) are
// kBodyTooLarge, found before that memory is taken.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text,
                                         size_t max_bytes = size_t{64} << 20);

// ParseJson of a body that must be an object; INVALID_ARGUMENT for any other.
absl::StatusOr<nlohmann::json> ParseObject(std::string_view text,
                                           size_t max_bytes = size_t{64} << 20);

}  // namespace longview::server
