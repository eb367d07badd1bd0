// Rerank: how well each document of a list answers a query.
#pragma once

#include <memory>
#include <string_view>

#include "longview/v1/text.pb.h"
#include "server/api/context.h"

namespace longview::server {

inline constexpr int kMaxRerankDocuments = 4096;

// Each pair of the query and a document is an item; the first that fails fails the call. Errors
// call the list `documents`, which is static storage. Errors found before the engine are replied
// inside the call.
std::shared_ptr<PendingCall> RunRerank(ApiContext& context, const CallInfo& info,
                                       const longview::v1::RerankRequest& request,
                                       std::string_view documents,
                                       Reply<longview::v1::RerankResponse> reply);

}  // namespace longview::server
