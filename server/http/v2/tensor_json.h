// One tensor's elements between JSON and the protocol's raw form: row-major, little-endian,
// BYTES as a 32-bit length and the bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace longview::server {

struct RawTensor {
  std::string bytes;
  int64_t elements = 0;
};

// `data` flat or nested. `name` is the tensor's (that of base64 BYTES is "image").
// INVALID_ARGUMENT names the tensor, the element and the value.
absl::StatusOr<RawTensor> TensorFromJson(const nlohmann::json& data, const std::string& datatype,
                                         const std::string& name);

// Appends a flat JSON array. INVALID_ARGUMENT once `out` has more than `max_bytes`, INTERNAL if
// `raw` is not a whole number of elements.
absl::Status AppendTensor(std::string_view raw, std::string_view datatype, size_t max_bytes,
                          std::string* out);

}  // namespace longview::server
