// The routes for clients of text-embeddings-inference; each does its own.
#pragma once

#include "server/http/context.h"

namespace longview::server {

void TeiEmbed(HttpContext& context, const ExchangePtr& exchange);
void TeiPredict(HttpContext& context, const ExchangePtr& exchange);
void TeiRerank(HttpContext& context, const ExchangePtr& exchange);

}  // namespace longview::server
