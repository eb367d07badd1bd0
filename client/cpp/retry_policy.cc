#include "client/cpp/retry_policy.h"

#include <algorithm>
#include <cmath>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace longview::client {

std::optional<double> RetryDelayOf(const grpc::Status& status) {
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE &&
      status.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED) {
    return std::nullopt;
  }
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return std::nullopt;
  for (const auto& detail : details.details()) {
    google::rpc::RetryInfo info;
    if (detail.Is<google::rpc::RetryInfo>() && detail.UnpackTo(&info)) {
      const auto& delay = info.retry_delay();
      return std::max(0.0, static_cast<double>(delay.seconds()) + delay.nanos() * 1e-9);
    }
  }
  return std::nullopt;
}

std::optional<double> NextDelay(const RetryPolicy& policy, const grpc::Status& status, int attempts,
                                double random, double seconds_left) {
  if (attempts >= policy.max_attempts) return std::nullopt;
  const std::optional<double> asked = RetryDelayOf(status);
  if (!asked) return std::nullopt;
  const double grown = *asked * std::pow(policy.backoff_growth, attempts - 1);
  // Never earlier than the server asked for.
  const double delay =
      std::max(*asked, std::min(grown, policy.max_delay_seconds)) * (1.0 + policy.jitter * random);
  if (delay >= seconds_left) return std::nullopt;
  return delay;
}

}  // namespace longview::client
