// The errors of admission, in the words clients read.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "server/metrics/metrics.h"
#include "server/scheduler/ticket.h"

namespace longview::server {

// The error for a ticket that the scheduler refused. REQUIRES: not admitted.
absl::Status RefusalError(const Admission& admission);

// The reason under which the metrics count a refusal.
RejectReason ReasonOf(Verdict verdict);

// Error of an admitted request that was displaced by another client's.
absl::Status DisplacedError(absl::Duration retry_after);

// The deadline passed, or came out of reach while the request waited.
absl::Status DeadlineError(bool was_running);

// The server's own bound on the time of a call (--default_timeout_seconds, --max_timeout_seconds)
// was reached.
absl::Status TimeoutError(absl::Duration timeout, bool was_running);

// The error of a waiting request whose memory open documents have come to hold.
absl::Status MemoryHeldError();

// The error of a call whose device, or whose document's device, is gone.
absl::Status DeviceLostError(std::string_view device);
// The error of a call that no device is left for.
absl::Status DevicesLostError();

// The model's answer to this input holds a NaN or an infinity in `where`.
absl::Status NotFiniteError(std::string_view model, std::string_view where, std::string_view dtype);

absl::Status CancelledError();

// The pool holds as many bytes of requests as it may.
absl::Status PoolFullError(size_t bytes, size_t limit);

}  // namespace longview::server
