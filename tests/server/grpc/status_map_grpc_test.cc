#include "server/status_map_grpc.h"

#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/errors.h"

namespace longview::server {
namespace {

google::rpc::Status Details(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  return details;
}

TEST(StatusMapGrpc, RefusalsCarryReasonAndDelay) {
  const grpc::Status status =
      ToGrpcStatus(MakeError(absl::StatusCode::kResourceExhausted, "the queue is full",
                             {.reason = "QUEUE_FULL", .retry_after = absl::Milliseconds(2500)}));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), "the queue is full");
  const google::rpc::Status details = Details(status);
  EXPECT_EQ(details.code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(details.message(), "the queue is full");
  ASSERT_EQ(details.details_size(), 2);
  EXPECT_EQ(details.details(0).type_url(), "type.googleapis.com/google.rpc.ErrorInfo");
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "QUEUE_FULL");
  EXPECT_EQ(info.domain(), "longview");
  google::rpc::RetryInfo retry;
  ASSERT_TRUE(details.details(1).UnpackTo(&retry));
  EXPECT_EQ(retry.retry_delay().seconds(), 2);
  EXPECT_EQ(retry.retry_delay().nanos(), 500'000'000);
  EXPECT_EQ(RetryDelayOf(status), absl::Milliseconds(2500));
}

TEST(StatusMapGrpc, DelaysAreWholeMillisecondsWhereThereAreAny) {
  EXPECT_EQ(RetryDelayOf(grpc::Status::OK), std::nullopt);
  EXPECT_EQ(RetryDelayOf(grpc::Status(grpc::StatusCode::UNAVAILABLE, "x")), std::nullopt);
  EXPECT_EQ(RetryDelayOf(ToGrpcStatus(absl::UnavailableError("x"))), std::nullopt);
  EXPECT_EQ(RetryDelayOf(ToGrpcStatus(
                MakeError(absl::StatusCode::kUnavailable, "x",
                          {.reason = "BRIEF", .retry_after = absl::Microseconds(10)}))),
            absl::Milliseconds(1));
}

TEST(StatusMapGrpc, ErrorsWithoutDetailGetAReason) {
  const google::rpc::Status details = Details(ToGrpcStatus(absl::InvalidArgumentError("text: x")));
  ASSERT_EQ(details.details_size(), 1);
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "INVALID_ARGUMENT");
}

TEST(StatusMapGrpc, LongMessagesAreCutAtACharacter) {
  std::string message(1499, 'a');
  message += "\u00e9 and more";
  const std::string cut = ToGrpcStatus(absl::NotFoundError(message)).error_message();
  EXPECT_EQ(cut, std::string(1499, 'a') + "...");
}

TEST(StatusMapGrpc, OkIsOk) { EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok()); }

}  // namespace
}  // namespace longview::server
