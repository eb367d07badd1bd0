// Bytes as tokens: id = byte + 1, 0 = padding, 257 ids (TFDS ByteTextEncoder, the text and
// retrieval tasks of Long Range Arena). Any bytes are text, a NUL byte too (id 1).
// Thread-safe: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace longview::models {

inline constexpr int kByteVocabularySize = 257;

// The first `max_length` bytes, which may end inside a character; 0 = all.
std::vector<int32_t> EncodeBytes(std::string_view bytes, int max_length = 0);

// Padding is dropped; bytes that are not UTF-8 become U+FFFD. INVALID_ARGUMENT for an id outside
// [0, 256].
absl::StatusOr<std::string> DecodeBytes(std::span<const int32_t> ids);

}  // namespace longview::models
