#include "server/http/deadline.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/errors.h"

namespace longview::server {
namespace {

constexpr char kGrpcTimeout[] = "Grpc-Timeout";
constexpr char kEnvoyTimeout[] = "X-Envoy-Expected-Rq-Timeout-Ms";
// Limits of the gRPC specification, and enough digits for 3 years of milliseconds.
constexpr size_t kGrpcDigits = 8;
constexpr size_t kEnvoyDigits = 11;

std::optional<int64_t> Digits(std::string_view text, size_t max_digits) {
  if (text.empty() || text.size() > max_digits) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<absl::Duration> Unit(char unit) {
  switch (unit) {
    case 'H':
      return absl::Hours(1);
    case 'M':
      return absl::Minutes(1);
    case 'S':
      return absl::Seconds(1);
    case 'm':
      return absl::Milliseconds(1);
    case 'u':
      return absl::Microseconds(1);
    case 'n':
      return absl::Nanoseconds(1);
    default:
      return std::nullopt;
  }
}

absl::Status BadHeader(const char* name, std::string_view value, const char* expected) {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat("header ", name, " is ", Quoted(value), ", expected ", expected),
                   {.reason = "BAD_HEADER", .retry_after = {}, .param = name});
}

}  // namespace

absl::StatusOr<absl::Time> RequestDeadline(const HttpRequest& request) {
  absl::Time deadline = absl::InfiniteFuture();
  if (const std::string_view value = request.Header(kGrpcTimeout); !value.empty()) {
    const auto number = Digits(value.substr(0, value.size() - 1), kGrpcDigits);
    const auto unit = Unit(value.back());
    if (!number || !unit) {
      return BadHeader(kGrpcTimeout, value, "up to 8 digits and one of H, M, S, m, u, n");
    }
    deadline = std::min(deadline, request.arrival + *number * *unit);
  }
  if (const std::string_view value = request.Header(kEnvoyTimeout); !value.empty()) {
    const auto millis = Digits(value, kEnvoyDigits);
    if (!millis) return BadHeader(kEnvoyTimeout, value, "a whole number of milliseconds");
    if (*millis > 0) deadline = std::min(deadline, request.arrival + absl::Milliseconds(*millis));
  }
  return deadline;
}

}  // namespace longview::server
