// The body of POST /score, as vLLM's clients write it.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/api/calls/score_answer.h"
#include "server/http/members.h"

namespace longview::server {

// INVALID_ARGUMENT names the member. The model may also stand in `query`. JSON values take at most
// `max_bytes` (ParseJson). Thread-safe.
absl::StatusOr<ScoreRequest> ParseScore(std::string_view body, std::string_view query,
                                        size_t max_bytes);

// For tests.
std::vector<MemberInfo> ScoreMembers();

}  // namespace longview::server
