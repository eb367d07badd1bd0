#include "server/status_map_http.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/errors.h"
#include "server/retry_delay.h"

namespace longview::server {
namespace {

constexpr int kClientClosedRequest = 499;

struct Row {
  int status;
  std::string_view type;
};

Row Find(absl::StatusCode code, std::string_view reason) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kFailedPrecondition:
      if (reason == kBodyTooLarge) return {413, "invalid_request_error"};
      if (reason == kUnsupportedMediaType) return {415, "invalid_request_error"};
      if (reason == kUndecodableImage) return {422, "invalid_request_error"};
      return {400, "invalid_request_error"};
    case absl::StatusCode::kNotFound:
      return {404, "not_found_error"};
    case absl::StatusCode::kUnauthenticated:
      return {401, "authentication_error"};
    case absl::StatusCode::kPermissionDenied:
      return {403, "permission_error"};
    case absl::StatusCode::kUnavailable:
      return {503, "unavailable_error"};
    case absl::StatusCode::kResourceExhausted:
      return {429, "rate_limit_error"};
    case absl::StatusCode::kDeadlineExceeded:
      return {504, "timeout_error"};
    case absl::StatusCode::kUnimplemented:
      // Most clients repeat whatever is 5xx, and the model will lack the task then, too.
      return {400, "invalid_request_error"};
    case absl::StatusCode::kCancelled:
      return {kClientClosedRequest, "timeout_error"};
    default:
      return {500, "server_error"};
  }
}

void AddRetryHeaders(const ErrorDetail& detail, HttpError& error) {
  const absl::Duration told =
      SpreadDelay(detail.reason, detail.retry_after.value_or(absl::Seconds(1)));
  const int64_t seconds = absl::ToInt64Seconds(absl::Ceil(told, absl::Seconds(1)));
  error.headers.emplace_back("Retry-After", absl::StrCat(seconds));
  error.headers.emplace_back("retry-after-ms", absl::StrCat(absl::ToInt64Milliseconds(told)));
}

}  // namespace

HttpError ToHttpError(const absl::Status& status) {
  const ErrorDetail detail = GetErrorDetail(status);
  const Row row = Find(status.code(), detail.reason);
  HttpError error{row.status,
                  row.type,
                  absl::StatusCodeToString(status.code()),
                  std::string(status.message()),
                  detail.param,
                  {}};
  switch (row.status) {
    case 401:
      error.headers.emplace_back("WWW-Authenticate", "Bearer");
      break;
    case 429:
    case 503:
      AddRetryHeaders(detail, error);
      break;
    case 504:
      error.headers.emplace_back("x-should-retry", "false");
      break;
    default:
      if (status.code() == absl::StatusCode::kUnimplemented) {
        error.headers.emplace_back("x-should-retry", "false");
      }
      break;
  }
  return error;
}

}  // namespace longview::server
