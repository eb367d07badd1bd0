// Retries: the failed calls that are repeated, and when.
//
// A call is repeated only if the server refused it before doing any work and said when to come
// back: UNAVAILABLE (loading, shutting down) or RESOURCE_EXHAUSTED (queue full) with a
// google.rpc.RetryInfo. Everything else reaches the caller at once: a broken connection may have
// cost the server the whole computation already, and a message over the limit stays over it.
//
// Thread-safe: plain values and pure functions.
#pragma once

#include <grpcpp/support/status.h>

#include <optional>

namespace longview::client {

struct RetryPolicy {
  int max_attempts = 5;         // Calls in all; 1 = never repeat.
  double backoff_growth = 1.5;  // The server's delay is multiplied by this per repetition.
  double max_delay_seconds = 10;
  double jitter = 0.2;  // The delay grows by up to this share, at random.
};

// The delay the server asks for, in seconds; nullopt if the status is no safe refusal.
std::optional<double> RetryDelayOf(const grpc::Status& status);

// Seconds to wait before the next attempt; nullopt = give up and report `status`.
//
// attempts: how many calls have failed, at least 1. random: uniform in [0, 1).
// seconds_left: until the caller's deadline; a wait that would reach it is not begun.
std::optional<double> NextDelay(const RetryPolicy& policy, const grpc::Status& status, int attempts,
                                double random, double seconds_left);

}  // namespace longview::client
