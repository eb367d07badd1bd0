// The answer of /v2/models/{m}/infer.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "inference/grpc_service.pb.h"
#include "server/http/message.h"
#include "server/http/v2/infer_request.h"

namespace longview::server {

// JSON, followed by the bytes of the outputs `forms` asks for in that form. Only if there are
// such does the answer have Inference-Header-Content-Length. An answer of more than `max_bytes` is
// INVALID_ARGUMENT, found while it is written. REQUIRES: `response` holds its outputs in raw form
// (INTERNAL otherwise).
absl::StatusOr<HttpResponse> MakeInferResponse(const inference::ModelInferResponse& response,
                                               const OutputForms& forms, size_t max_bytes);

}  // namespace longview::server
