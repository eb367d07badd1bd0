// The body of POST /v1/embeddings, as OpenAI's and Jina's clients write it, Jina's late chunking
// included.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
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

// Late chunking: a list of texts is one document, and each of them a chunk. Thread-safe, like the
// next.
//
// The document of `texts`, which are taken from it: one behind another, with a space where two
// would grow together, and a chunk for each. INVALID_ARGUMENT for token ids.
absl::StatusOr<longview::v1::EmbedRequest> JoinToDocument(
    std::vector<longview::v1::EmbedRequest> texts);

// An error about the document's chunks as one about the texts of `input`.
absl::Status OfLateInputs(const absl::Status& status);

}  // namespace longview::server
