// Errors as HTTP answers: the only place that names HTTP statuses of refused calls.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace longview::server {

// Reasons of ErrorDetail that turn an INVALID_ARGUMENT into a status other than 400.
inline constexpr std::string_view kBodyTooLarge = "BODY_TOO_LARGE";                  // 413
inline constexpr std::string_view kUnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE";  // 415
inline constexpr std::string_view kUndecodableImage = "UNDECODABLE_IMAGE";           // 422

struct HttpError {
  int status = 500;
  std::string_view type;  // OpenAI's name of the kind: "invalid_request_error", ...
  std::string code;       // gRPC's name: "INVALID_ARGUMENT".
  std::string message;
  std::string param;  // The offending field, may be empty.
  // Retry-After, retry-after-ms, x-should-retry, WWW-Authenticate.
  std::vector<std::pair<std::string, std::string>> headers;
};

// REQUIRES: !status.ok().
HttpError ToHttpError(const absl::Status& status);

}  // namespace longview::server
