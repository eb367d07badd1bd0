// The typed Embed call: one vector, or one for each chunk of a text.
#pragma once

#include <memory>

#include "longview/v1/text.pb.h"
#include "server/api/context.h"

namespace longview::server {

// Errors found before the engine are replied inside the call. The items of a text in chunks are
// admitted as one.
std::shared_ptr<PendingCall> RunEmbed(ApiContext& context, const CallInfo& info,
                                      const longview::v1::EmbedRequest& request,
                                      Reply<longview::v1::EmbedResponse> reply);

}  // namespace longview::server
