// The routes for clients of text-embeddings-inference; each answers a body that was read.
#pragma once

#include <vector>

#include "server/http/context.h"
#include "server/http/members.h"
#include "server/http/tei/tei_body.h"

namespace longview::server {

void TeiEmbed(HttpContext& context, const ExchangePtr& exchange, TeiBody body);
void TeiPredict(HttpContext& context, const ExchangePtr& exchange, TeiBody body);
void TeiRerank(HttpContext& context, const ExchangePtr& exchange, TeiBody body);
void TeiSimilarity(HttpContext& context, const ExchangePtr& exchange, TeiBody body);

// For tests: the members of /rerank with `texts`.
std::vector<MemberInfo> TeiRerankMembers();

}  // namespace longview::server
