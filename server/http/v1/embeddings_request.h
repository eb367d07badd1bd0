// The body of POST /v1/embeddings.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "longview/v1/text.pb.h"

namespace longview::server {

struct EmbeddingsRequest {
  // One per input; model, pooling and so on are set in each.
  std::vector<longview::v1::EmbedRequest> items;
  bool base64 = false;  // encoding_format
};

// OpenAI allows as many.
inline constexpr size_t kMaxEmbeddingInputs = 2048;

// INVALID_ARGUMENT names the member. JSON values take at most `max_bytes` (ParseJson). Thread-safe.
absl::StatusOr<EmbeddingsRequest> ParseEmbeddings(std::string_view body,
                                                  size_t max_bytes = size_t{64} << 20);

}  // namespace longview::server
