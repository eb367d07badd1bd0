#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "client/cpp/channel.h"
#include "client/cpp/client.h"
#include "client/cpp/retry_policy.h"
#include "tests/client/fake_server.h"

namespace longview::client {
namespace {

constexpr double kForever = INFINITY;

TEST(RetryDelayOf, OnlyRefusalsThatNameADelay) {
  using grpc::StatusCode;
  EXPECT_DOUBLE_EQ(*RetryDelayOf(Refusal(StatusCode::UNAVAILABLE, "loading", 1.5)), 1.5);
  EXPECT_DOUBLE_EQ(*RetryDelayOf(Refusal(StatusCode::RESOURCE_EXHAUSTED, "full", 0.25)), 0.25);
  EXPECT_FALSE(RetryDelayOf(Refusal(StatusCode::UNAVAILABLE, "gone", std::nullopt)));
  EXPECT_FALSE(RetryDelayOf(Refusal(StatusCode::RESOURCE_EXHAUSTED, "size", std::nullopt)));
  EXPECT_FALSE(RetryDelayOf(Refusal(StatusCode::INTERNAL, "bug", 1.0)));
  EXPECT_FALSE(RetryDelayOf(Refusal(StatusCode::DEADLINE_EXCEEDED, "late", 1.0)));
  EXPECT_FALSE(RetryDelayOf(grpc::Status(StatusCode::UNAVAILABLE, "x", "not a protobuf\xFF")));
  EXPECT_FALSE(RetryDelayOf(grpc::Status::OK));
}

TEST(NextDelay, GrowsWithinItsLimitsAndNeverBelowWhatWasAsked) {
  const RetryPolicy policy{
      .max_attempts = 4, .backoff_growth = 2, .max_delay_seconds = 3, .jitter = 0.5};
  const grpc::Status full = Refusal(grpc::StatusCode::RESOURCE_EXHAUSTED, "full", 1.0);
  EXPECT_DOUBLE_EQ(*NextDelay(policy, full, 1, 0.0, kForever), 1.0);
  EXPECT_DOUBLE_EQ(*NextDelay(policy, full, 2, 0.0, kForever), 2.0);
  EXPECT_DOUBLE_EQ(*NextDelay(policy, full, 3, 0.0, kForever), 3.0);
  EXPECT_DOUBLE_EQ(*NextDelay(policy, full, 1, 0.5, kForever), 1.25);
  EXPECT_FALSE(NextDelay(policy, full, 4, 0.0, kForever)) << "attempts are used up";
  const grpc::Status slow = Refusal(grpc::StatusCode::RESOURCE_EXHAUSTED, "full", 20.0);
  EXPECT_DOUBLE_EQ(*NextDelay(policy, slow, 1, 0.0, kForever), 20.0);
}

TEST(NextDelay, AWaitThatReachesTheDeadlineIsNotBegun) {
  const grpc::Status full = Refusal(grpc::StatusCode::RESOURCE_EXHAUSTED, "full", 1.0);
  EXPECT_FALSE(NextDelay({}, full, 1, 0.0, 1.0));
  EXPECT_TRUE(NextDelay({}, full, 1, 0.0, 1.1));
}

class ClientTest : public testing::Test {
 protected:
  Client MakeClient(double timeout_seconds, const std::string& key = "") {
    ClientOptions options;
    options.timeout_seconds = timeout_seconds;
    options.api_key = key;
    options.sleep = [this](double seconds) { slept_.push_back(seconds); };
    return Client(*OpenChannel({.server = server_.Address()}), std::move(options));
  }

  FakeServer server_;
  std::vector<double> slept_;
};

TEST_F(ClientTest, RefusedCallsAreRepeatedUntilTheyAreServed) {
  server_.FailNext({Refusal(grpc::StatusCode::UNAVAILABLE, "loading", 0.5),
                    Refusal(grpc::StatusCode::RESOURCE_EXHAUSTED, "full", 0.5)});
  v1::ClassifyRequest request;
  request.set_text("hello there");
  v1::ClassifyResponse response;
  EXPECT_TRUE(MakeClient(60).Classify(request, &response).ok());
  EXPECT_EQ(response.labels(0).name(), "hello");
  EXPECT_EQ(server_.TextCalls(), 3);
  ASSERT_EQ(slept_.size(), 2u);
  EXPECT_GE(slept_[0], 0.5);
  EXPECT_GE(slept_[1], slept_[0] / 1.2);
}

TEST_F(ClientTest, OtherErrorsReachTheCallerAtOnce) {
  server_.FailNext({grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "too long")});
  v1::ClassifyResponse response;
  const grpc::Status status = MakeClient(60).Classify({}, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "too long");
  EXPECT_EQ(server_.TextCalls(), 1);
  EXPECT_TRUE(slept_.empty());
}

TEST_F(ClientTest, TheLastRefusalIsReportedWhenAttemptsAreUsedUp) {
  server_.FailNext(
      std::deque<grpc::Status>(9, Refusal(grpc::StatusCode::RESOURCE_EXHAUSTED, "full", 0.01)));
  v1::EmbedResponse response;
  const grpc::Status status = MakeClient(60).Embed({}, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(server_.TextCalls(), RetryPolicy{}.max_attempts);
}

TEST_F(ClientTest, ARefusalLongerThanTheDeadlineIsReportedAtOnce) {
  server_.FailNext({Refusal(grpc::StatusCode::UNAVAILABLE, "loading", 30.0)});
  v1::EmbedResponse response;
  EXPECT_EQ(MakeClient(5).Embed({}, &response).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(server_.TextCalls(), 1);
  EXPECT_TRUE(slept_.empty());
}

TEST_F(ClientTest, KeyAndDeadlineTravelWithTheCall) {
  v1::EmbedResponse response;
  ASSERT_TRUE(MakeClient(30, "secret").Embed({}, &response).ok());
  EXPECT_EQ(server_.LastAuthorization(), "Bearer secret");
  EXPECT_GT(server_.LastSecondsLeft(), 20);
  EXPECT_LT(server_.LastSecondsLeft(), 31);
  ASSERT_TRUE(MakeClient(0).Embed({}, &response).ok());
  EXPECT_EQ(server_.LastAuthorization(), "");
  EXPECT_GT(server_.LastSecondsLeft(), 1e6);
}

TEST(OpenChannel, AnUnreadableCaFileIsAnError) {
  EXPECT_EQ(OpenChannel({.ca_file = "/nonexistent/ca.pem"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace longview::client
