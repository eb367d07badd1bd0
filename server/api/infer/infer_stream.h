// One request of ModelStreamInfer: generators answer piece by piece, all others once.
#pragma once

#include <memory>

#include "absl/functional/any_invocable.h"
#include "server/api/calls/context.h"

namespace longview::server {

// A request that is refused before it is parsed: one error with its names. It has been recorded.
std::unique_ptr<InferStream> RefusedInferStream(const inference::ModelInferRequest& names,
                                                const absl::Status& status);

}  // namespace longview::server
