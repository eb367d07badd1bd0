#include "server/engine/refusals.h"

#include <string>

#include "absl/strings/str_format.h"
#include "server/errors.h"
#include "server/exception_guard.h"

namespace longview::server {
namespace {

constexpr absl::Duration kShortRetry = absl::Milliseconds(100);
constexpr absl::Duration kLongRetry = absl::Seconds(1);

std::string Each(int lanes) {
  return lanes == 1 ? "" : absl::StrFormat(" for each of %d devices", lanes);
}

}  // namespace

absl::Status RefusalError(const Admission& admission) {
  const double need = admission.need, limit = admission.limit;
  switch (admission.verdict) {
    case Verdict::kQueueFull:
      return MakeError(absl::StatusCode::kResourceExhausted,
                       absl::StrFormat("queue full: %.3g s of work would wait, "
                                       "max_queue_seconds is %.3g%s",
                                       need, limit / admission.lanes, Each(admission.lanes)),
                       {"QUEUE_FULL", admission.retry_after, ""});
    case Verdict::kLost:
      return DevicesLostError();
    case Verdict::kTooLarge:
      return MakeError(absl::StatusCode::kInvalidArgument,
                       absl::StrFormat("the request needs %.0f bytes of memory while it runs; "
                                       "the device has %.0f (cache_bytes)",
                                       need, limit),
                       {"EXCEEDS_MEMORY", std::nullopt, ""});
    case Verdict::kMemoryFull:
      return MakeError(absl::StatusCode::kResourceExhausted,
                       absl::StrFormat("the request needs %.0f bytes of memory while it runs; "
                                       "open documents leave %.0f (cache_bytes)",
                                       need, limit),
                       {"MEMORY_FULL", admission.retry_after, ""});
    default:
      return MakeError(absl::StatusCode::kDeadlineExceeded,
                       absl::StrFormat("the deadline cannot be met: it needs %.3g s, %.3g s of "
                                       "these waiting, and %.3g s are left",
                                       need, admission.wait_seconds, limit),
                       {"DEADLINE_INFEASIBLE", admission.retry_after, ""});
  }
}

RejectReason ReasonOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kQueueFull:
      return RejectReason::kQueue;
    case Verdict::kTooLarge:
    case Verdict::kMemoryFull:
      return RejectReason::kMemory;
    case Verdict::kLost:
      return RejectReason::kDraining;  // UNAVAILABLE, as of a server that leaves.
    default:
      return RejectReason::kDeadline;
  }
}

absl::Status DisplacedError(absl::Duration retry_after) {
  return MakeError(absl::StatusCode::kResourceExhausted,
                   "queue full: this client has most of the work waiting, and another needed room",
                   {"QUEUE_FULL", retry_after, ""});
}

absl::Status DeadlineError(bool was_running) {
  return MakeError(absl::StatusCode::kDeadlineExceeded,
                   was_running ? "the deadline passed while the request was running"
                               : "the deadline came out of reach while the request waited",
                   {"DEADLINE_EXCEEDED", std::nullopt, ""});
}

absl::Status TimeoutError(absl::Duration timeout, bool was_running) {
  return MakeError(
      absl::StatusCode::kDeadlineExceeded,
      absl::StrFormat("the server's time limit of %.6g s (default_timeout_seconds, "
                      "max_timeout_seconds) passed while the request %s",
                      absl::ToDoubleSeconds(timeout), was_running ? "was running" : "waited"),
      {"DEADLINE_EXCEEDED", std::nullopt, ""});
}

absl::Status MemoryHeldError() {
  return MakeError(absl::StatusCode::kResourceExhausted,
                   "documents that were opened while the request waited hold the memory it needs",
                   {"MEMORY_FULL", kLongRetry, ""});
}

absl::Status DeviceLostError(std::string_view device) {
  return MakeError(absl::StatusCode::kUnavailable,
                   absl::StrFormat("the device %s was lost while the request was on it", device),
                   {"DEVICE_LOST", kLongRetry, ""});
}

absl::Status DevicesLostError() {
  return MakeError(absl::StatusCode::kUnavailable,
                   "the device that has what the request needs was lost",
                   {"DEVICE_LOST", kLongRetry, ""});
}

absl::Status NotFiniteError(std::string_view model, std::string_view where,
                            std::string_view dtype) {
  return MakeError(absl::StatusCode::kInternal,
                   absl::StrFormat("model \"%s\" gives %s that are not finite numbers for this "
                                   "input, in %s",
                                   model, where, dtype),
                   {"NOT_FINITE", std::nullopt, ""});
}

absl::Status CancelledError() {
  return MakeError(absl::StatusCode::kCancelled, "the client cancelled the call",
                   {"CANCELLED", std::nullopt, ""});
}

absl::Status OutOfMemoryError() {
  return MakeError(absl::StatusCode::kResourceExhausted,
                   "the server has no memory left for the request",
                   {"MEMORY_FULL", kLongRetry, ""});
}

absl::Status PoolFullError(size_t bytes, size_t limit) {
  return MakeError(absl::StatusCode::kResourceExhausted,
                   absl::StrFormat("requests being read hold too much memory: %d bytes more "
                                   "would exceed %d",
                                   bytes, limit),
                   {"MEMORY_FULL", kShortRetry, ""});
}

}  // namespace longview::server
