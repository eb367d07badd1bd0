// How long a caller is willing to wait, as HTTP headers say it.
#pragma once

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/message.h"

namespace longview::server {

// `arrival` plus the shortest of `Grpc-Timeout` (up to 8 digits and one of H M S m u n) and
// `X-Envoy-Expected-Rq-Timeout-Ms` (an integer; 0 = none); the infinite future without them.
// INVALID_ARGUMENT names the header that does not parse.
absl::StatusOr<absl::Time> RequestDeadline(const HttpRequest& request);

}  // namespace longview::server
