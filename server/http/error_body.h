// Errors as HTTP answers, in the shape the path's protocol expects.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "server/http/message.h"

namespace longview::server {

enum class ErrorShape {
  kString,  // {"error": "..."}: Open Inference Protocol.
  kObject,  // {"error": {"message", "type", "code", "param"}}: OpenAI, and everything else.
  kTei,     // {"error": "...", "error_type": "..."}: text-embeddings-inference.
  // The first two with a "message" beside the error, which Cohere's clients read.
  kStringAndMessage,
  kObjectAndMessage,
};

// /v2 and Ollama's /api answer strings; /embed, /rerank and /predict are
// text-embeddings-inference's; rerank and embed of /v1 and /v2 are Cohere's.
ErrorShape ShapeOfPath(std::string_view path);

// Status, body and headers (Retry-After, x-should-retry, WWW-Authenticate). INTERNAL says the
// request id and nothing else.
// REQUIRES: !status.ok().
HttpResponse ErrorResponse(const absl::Status& status, ErrorShape shape,
                           std::string_view request_id);

}  // namespace longview::server
