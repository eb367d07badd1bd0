// Content-Encoding gzip and deflate.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace longview::server {

// True for the codings Decompress reads: gzip, x-gzip, deflate (any case).
bool IsCompressed(std::string_view coding);

// The decompressed body; `deflate` with or without zlib's wrapper, as clients disagree.
// At most `limit` bytes are ever produced: beyond them kBodyTooLarge; data that does not
// decompress, or ends early, is INVALID_ARGUMENT.
absl::StatusOr<std::string> Decompress(std::string_view coding, std::string_view body,
                                       size_t limit);

}  // namespace longview::server
