// The body of Cohere's POST /v2/embed, and of its first form, /v1/embed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "longview/v1/text.pb.h"
#include "server/http/members.h"
#include "server/http/vector_form.h"

namespace longview::server {

struct CohereEmbedRequest {
  std::string model;
  std::vector<longview::v1::EmbedRequest> items;  // One per text; without a model.
  std::vector<std::string> texts;                 // The texts once more, for the answer.
  std::vector<VectorForm> forms;                  // Each once, as asked for; empty: not asked.
};

// INVALID_ARGUMENT names the member. JSON values take at most `max_bytes` (ParseJson). Thread-safe.
absl::StatusOr<CohereEmbedRequest> ParseCohereEmbed(std::string_view body, size_t max_bytes);

// For tests.
std::vector<MemberInfo> CohereEmbedMembers();

}  // namespace longview::server
