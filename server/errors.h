// The one way errors are made in the server, so that both transports tell the same story.
//
// An error is an absl::Status whose payload carries a machine-readable reason and, for
// refusals worth repeating, a delay. server/status_map turns it into gRPC and HTTP.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace longview::server {

struct ErrorDetail {
  std::string reason = "";  // "QUEUE_FULL", "MODEL_LOADING", ...: google.rpc.ErrorInfo.reason.
  std::optional<absl::Duration> retry_after = std::nullopt;  // google.rpc.RetryInfo, Retry-After.
  std::string param = "";  // The offending field, where one is known (OpenAI's `param`).
};

absl::Status MakeError(absl::StatusCode code, std::string message, const ErrorDetail& detail);

// UNAVAILABLE: the server leaves, and another, or the next one, is to be asked.
absl::Status ShuttingDownError();

// The detail that MakeError attached; for other statuses a reason derived from the code.
ErrorDetail GetErrorDetail(const absl::Status& status);

// `value` cut to 64 bytes at a character border, with "..." if cut; invalid UTF-8 and control
// characters become U+FFFD. For user input in messages, such as names of unknown fields.
std::string Excerpt(std::string_view value);

// Excerpt(value) in double quotes.
std::string Quoted(std::string_view value);

}  // namespace longview::server
