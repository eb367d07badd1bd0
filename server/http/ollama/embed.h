// Ollama's POST /api/embed and /api/embeddings: the routes and their bodies.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "longview/v1/text.pb.h"
#include "server/api/calls/list_answer.h"
#include "server/http/context.h"
#include "server/http/members.h"

namespace longview::server {

// Adds both routes.
void AddOllamaEmbed(HttpContext& context, Router& router);

enum class OllamaRoute { kEmbed, kEmbeddings };

// INVALID_ARGUMENT names the member. Texts that are too long are cut unless the body says
// otherwise. JSON values take at most `max_bytes` (ParseJson). Thread-safe.
absl::StatusOr<ListRequest<longview::v1::EmbedRequest>> ParseOllamaEmbed(OllamaRoute route,
                                                                         std::string_view body,
                                                                         size_t max_bytes);

// For tests.
std::vector<MemberInfo> OllamaMembers(OllamaRoute route);

}  // namespace longview::server
