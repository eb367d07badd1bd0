// Errors as gRPC statuses: the only place that names gRPC codes.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace longview::server {

// Code and message, with google.rpc.ErrorInfo (and RetryInfo where a repetition may help) in
// the details that travel as grpc-status-details-bin. Long messages are cut: they share the
// trailers' few kilobytes with everything else.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace longview::server
