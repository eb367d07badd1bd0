// The body of POST /v1/embeddings, as OpenAI's and Jina's clients write it.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "longview/v1/text.pb.h"
#include "server/http/members.h"
#include "server/http/vector_form.h"

namespace longview::server {

struct EmbeddingsRequest {
  // One per input; model, pooling and so on are set in each.
  std::vector<longview::v1::EmbedRequest> items;
  VectorForm form = VectorForm::kFloat;
  bool late_chunking = false;  // The inputs are the chunks of the only item.
};

// INVALID_ARGUMENT names the member. JSON values take at most `max_bytes` (ParseJson). Thread-safe.
absl::StatusOr<EmbeddingsRequest> ParseEmbeddings(std::string_view body,
                                                  size_t max_bytes = size_t{64} << 20);

// For tests.
std::vector<MemberInfo> EmbeddingsMembers();

}  // namespace longview::server
