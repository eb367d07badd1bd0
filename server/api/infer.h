// ModelInfer: tensors in, tensors out.
#pragma once

#include <memory>

#include "server/api/context.h"
#include "server/api/infer_prepare.h"

namespace longview::server {

// Splits the request into items, runs them one by one, joins their answers. The first item
// that fails fails the request; its index is in the message if there is more than one.
// Generators answer when their sequences are whole.
std::shared_ptr<PendingCall> RunInfer(ApiContext& context, const CallInfo& info,
                                      const inference::ModelInferRequest& request,
                                      Reply<inference::ModelInferResponse> reply);

// The two halves of RunInfer. A request that is refused is recorded.
absl::StatusOr<PreparedInfer> FindAndPrepare(ApiContext& context, const CallInfo& info,
                                             const inference::ModelInferRequest& request);
std::shared_ptr<PendingCall> RunPrepared(ApiContext& context, const CallInfo& info,
                                         PreparedInfer prepared,
                                         Reply<inference::ModelInferResponse> reply);

// The parameter `timeout` counts if it is shorter than the deadline.
CallInfo WithTimeout(CallInfo info, const PreparedInfer& prepared);

}  // namespace longview::server
