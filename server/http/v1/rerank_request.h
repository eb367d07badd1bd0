// The body of POST /v1/rerank, as Jina's and Cohere's clients write it.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "longview/v1/text.pb.h"

namespace longview::server {

// INVALID_ARGUMENT names the member. JSON values take at most `max_bytes` (ParseJson). Thread-safe.
absl::StatusOr<longview::v1::RerankRequest> ParseRerank(std::string_view body, size_t max_bytes);

}  // namespace longview::server
