// Byte counts as people write them: 1048576, 64MiB, 2GiB, and 25% where a whole is known.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace longview::server {

// Accepts an integer or an integer with one of the suffixes KiB, MiB, GiB, TiB.
absl::StatusOr<uint64_t> ParseBytes(std::string_view text);

// Accepts what ParseBytes does, or a percentage of `whole` from 1% to 100%.
absl::StatusOr<uint64_t> ParseBytesOf(std::string_view text, uint64_t whole);

}  // namespace longview::server
