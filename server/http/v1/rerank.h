// POST /v1/rerank: bodies as Jina's and Cohere's clients write them, answers in the shape of
// theirs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "longview/v1/text.pb.h"
#include "nlohmann/json.hpp"
#include "server/http/context.h"
#include "server/http/members.h"

namespace longview::server {

struct RerankBody {
  longview::v1::RerankRequest request;
  // The documents as JSON, if they are to be returned; "" for one that is a string.
  std::vector<std::string> as_sent;
};

// INVALID_ARGUMENT names the member. JSON values take at most `max_bytes` (ParseJson). Thread-safe.
absl::StatusOr<RerankBody> ParseRerank(std::string_view body, size_t max_bytes);

// ParseRerank of a body that is JSON already. The model may also stand in `query`.
absl::StatusOr<RerankBody> ReadRerank(nlohmann::json body, std::string_view query);

// For tests.
std::vector<MemberInfo> RerankMembers();

// `api_version`: Cohere's, "1" or "2"; static storage.
void AnswerRerank(HttpContext& context, const ExchangePtr& exchange, RerankBody body,
                  std::string_view api_version);

}  // namespace longview::server
