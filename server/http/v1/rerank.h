// Answers in the shape of Jina's and Cohere's rerank.
#pragma once

#include <string_view>

#include "server/http/context.h"
#include "server/http/v1/rerank_request.h"

namespace longview::server {

// `api_version`: Cohere's, "1" or "2"; static storage.
void AnswerRerank(HttpContext& context, const ExchangePtr& exchange, RerankBody body,
                  std::string_view api_version);

}  // namespace longview::server
