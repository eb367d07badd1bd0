// Errors as gRPC statuses: the only place that names gRPC codes.
#pragma once

#include <grpcpp/support/status.h>

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace longview::server {

// Code and message, with google.rpc.ErrorInfo (and RetryInfo where a repetition may help) in
// the details that travel as grpc-status-details-bin. Long messages are cut: they share the
// trailers' few kilobytes with everything else.
grpc::Status ToGrpcStatus(const absl::Status& status);

// The delay of a status that ToGrpcStatus made: that of its RetryInfo, in whole milliseconds. None
// if it has none.
std::optional<absl::Duration> RetryDelayOf(const grpc::Status& status);

}  // namespace longview::server
