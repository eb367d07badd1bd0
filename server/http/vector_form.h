// Vectors in the forms that clients ask for.
// Thread-safe: pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace longview::server {

// kBase64: little-endian float32. kInt8: 127 x / max |x|, rounded; kUint8: the same and 128.
// kUbinary: the signs as bits, 1 for above 0, most significant first, zeros behind the last;
// kBinary: the same less 128.
enum class VectorForm { kFloat, kBase64, kInt8, kUint8, kBinary, kUbinary };

std::string_view NameOf(VectorForm form);  // "float", ...

// The form that a string names; INVALID_ARGUMENT names `field` and the forms in `known`.
absl::StatusOr<VectorForm> ReadVectorForm(const nlohmann::json& value, std::string_view field,
                                          std::span<const VectorForm> known);

// A list of numbers, or a string.
void AppendVector(std::span<const float> values, VectorForm form, std::string* out);

}  // namespace longview::server
