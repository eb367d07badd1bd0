// ModelInfer: tensors in, tensors out.
#pragma once

#include <memory>

#include "server/api/context.h"

namespace longview::server {

// Splits the request into items, runs them one by one, joins their answers. The first item
// that fails fails the request; its index is in the message if there is more than one.
std::shared_ptr<PendingCall> RunInfer(ApiContext& context, const CallInfo& info,
                                      const inference::ModelInferRequest& request,
                                      Reply<inference::ModelInferResponse> reply);

}  // namespace longview::server
