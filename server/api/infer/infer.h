// ModelInfer: tensors in, tensors out.
#pragma once

#include <memory>

#include "server/api/calls/context.h"
#include "server/api/infer/infer_prepare.h"

namespace longview::server {

// The two halves of Api::Infer. A request that is refused is recorded.
absl::StatusOr<PreparedInfer> FindAndPrepare(ApiContext& context, const CallInfo& info,
                                             const inference::ModelInferRequest& request);
std::shared_ptr<PendingCall> RunPrepared(ApiContext& context, const CallInfo& info,
                                         PreparedInfer prepared,
                                         Reply<inference::ModelInferResponse> reply);

// The parameter `timeout` counts if it is shorter than the deadline.
CallInfo WithTimeout(CallInfo info, const PreparedInfer& prepared);

}  // namespace longview::server
