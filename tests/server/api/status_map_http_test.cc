#include "server/status_map_http.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>

#include "server/errors.h"

namespace longview::server {
namespace {

std::map<std::string, std::string> Headers(const HttpError& error) {
  return {error.headers.begin(), error.headers.end()};
}

TEST(StatusMapHttp, EveryCodeHasItsStatusAndType) {
  const std::tuple<absl::StatusCode, int, const char*, const char*> rows[] = {
      {absl::StatusCode::kInvalidArgument, 400, "invalid_request_error", "INVALID_ARGUMENT"},
      {absl::StatusCode::kUnauthenticated, 401, "authentication_error", "UNAUTHENTICATED"},
      {absl::StatusCode::kPermissionDenied, 403, "permission_error", "PERMISSION_DENIED"},
      {absl::StatusCode::kNotFound, 404, "not_found_error", "NOT_FOUND"},
      {absl::StatusCode::kResourceExhausted, 429, "rate_limit_error", "RESOURCE_EXHAUSTED"},
      {absl::StatusCode::kInternal, 500, "server_error", "INTERNAL"},
      {absl::StatusCode::kUnimplemented, 400, "invalid_request_error", "UNIMPLEMENTED"},
      {absl::StatusCode::kUnavailable, 503, "unavailable_error", "UNAVAILABLE"},
      {absl::StatusCode::kDeadlineExceeded, 504, "timeout_error", "DEADLINE_EXCEEDED"},
  };
  for (const auto& [code, status, type, name] : rows) {
    const HttpError error = ToHttpError(absl::Status(code, "what"));
    EXPECT_EQ(error.status, status) << name;
    EXPECT_EQ(error.type, type) << name;
    EXPECT_EQ(error.code, name);
    EXPECT_EQ(error.message, "what");
  }
}

TEST(StatusMapHttp, DelaysAreOneFigureInSecondsAndMilliseconds) {
  const absl::Status full =
      MakeError(absl::StatusCode::kResourceExhausted, "full",
                {.reason = "REQUEST_BYTES", .retry_after = absl::Milliseconds(1201)});
  std::set<int> told;
  for (int i = 0; i < 100; ++i) {
    const auto headers = Headers(ToHttpError(full));
    const int millis = std::stoi(headers.at("retry-after-ms"));
    EXPECT_GE(millis, 1201);
    EXPECT_LE(millis, 2402);
    EXPECT_EQ(std::stoi(headers.at("Retry-After")), (millis + 999) / 1000);
    told.insert(millis);
  }
  EXPECT_GT(told.size(), 90u) << "those that are refused together come back one by one";
  const auto alone =
      Headers(ToHttpError(MakeError(absl::StatusCode::kResourceExhausted, "alone",
                                    {.reason = "ALONE", .retry_after = absl::Milliseconds(1201)})));
  EXPECT_EQ(alone.at("Retry-After"), "2");
  EXPECT_EQ(alone.at("retry-after-ms"), "1201");
  const auto short_delay = Headers(
      ToHttpError(MakeError(absl::StatusCode::kUnavailable, "loading",
                            {.reason = "MODEL_LOADING", .retry_after = absl::Microseconds(10)})));
  EXPECT_EQ(short_delay.at("Retry-After"), "1");
  EXPECT_EQ(short_delay.at("retry-after-ms"), "1");
  const auto without = Headers(ToHttpError(absl::UnavailableError("x")));
  EXPECT_GE(std::stoi(without.at("retry-after-ms")), 1000);
}

TEST(StatusMapHttp, RepetitionIsForbiddenWhereItCannotHelp) {
  EXPECT_EQ(Headers(ToHttpError(absl::UnimplementedError("x"))).at("x-should-retry"), "false");
  EXPECT_EQ(Headers(ToHttpError(absl::DeadlineExceededError("x"))).at("x-should-retry"), "false");
  EXPECT_EQ(Headers(ToHttpError(absl::UnauthenticatedError("x"))).at("WWW-Authenticate"), "Bearer");
  EXPECT_TRUE(ToHttpError(absl::InvalidArgumentError("x")).headers.empty());
}

TEST(StatusMapHttp, ReasonsRefineInvalidArgument) {
  const auto status_of = [](std::string_view reason) {
    return ToHttpError(MakeError(absl::StatusCode::kInvalidArgument, "x",
                                 {.reason = std::string(reason), .param = "text"}))
        .status;
  };
  EXPECT_EQ(status_of(kBodyTooLarge), 413);
  EXPECT_EQ(status_of(kUnsupportedMediaType), 415);
  EXPECT_EQ(status_of(kUndecodableImage), 422);
  EXPECT_EQ(status_of("INVALID_ARGUMENT"), 400);
}

}  // namespace
}  // namespace longview::server
