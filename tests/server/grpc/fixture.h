// A gRPC server over a test backend, and a channel to it.
#pragma once

#include <google/protobuf/text_format.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/grpc/grpc_server.h"
#include "server/status_map_grpc.h"
#include "tests/server/api/backend.h"
#include "tests/server/grpc/raw_http2.h"

namespace longview::testing {

// Factor for bounds on seconds of real time; 1 in a program without sanitizers, with which it runs
// slower than it is.
inline double TimeSlack() {
#if defined(LONGVIEW_THREAD_SANITIZER)
  return 10;
#elif defined(__SANITIZE_ADDRESS__)
  return 4;
#else
  return 1;
#endif
}

class GrpcFixture : public ::testing::Test {
 protected:
  GrpcFixture() : GrpcFixture(server::ApiOptions(), server::GrpcServerOptions()) {}
  GrpcFixture(server::ApiOptions api, server::GrpcServerOptions options,
              server::ByteLimits limits = {})
      : backend(std::move(api), limits), server(std::make_unique<server::GrpcServer>(backend.api)) {
    options.port = 0;
    options.bytes = &backend.bytes;
    const absl::StatusOr<int> bound = server->Start(options);
    EXPECT_TRUE(bound.ok()) << bound.status();
    port = bound.value_or(0);
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetInt("grpc.use_local_subchannel_pool", 1);
    channel = grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port),
                                        grpc::InsecureChannelCredentials(), arguments);
  }

  template <typename Message>
  static Message Parse(const std::string& text) {
    Message message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
    return message;
  }

  // Waits until `condition` holds; false after 20 s, or as many more as a sanitizer needs.
  static bool Eventually(const std::function<bool()>& condition) {
    const absl::Time end = absl::Now() + absl::Seconds(20) * TimeSlack();
    while (absl::Now() < end) {
      if (condition()) return true;
      absl::SleepFor(absl::Milliseconds(1));
    }
    return false;
  }

  // Waits until the server stops: it takes no connection any more.
  bool Stops() const {
    return Eventually([this] { return !RawHttp2(port, 65535).connected(); });
  }

  static void SetTimeout(grpc::ClientContext& context, absl::Duration timeout) {
    context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  }

  // Expects that a stopping server ended the call: UNAVAILABLE, with one delay in both forms.
  static void ExpectStopped(const grpc::Status& status, const grpc::ClientContext& context) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
    const auto delay = server::RetryDelayOf(status);
    ASSERT_TRUE(delay.has_value()) << status.error_message();
    const auto& trailers = context.GetServerTrailingMetadata();
    const auto pushback = trailers.find("grpc-retry-pushback-ms");
    ASSERT_NE(pushback, trailers.end());
    EXPECT_EQ(std::string(pushback->second.data(), pushback->second.size()),
              absl::StrCat(absl::ToInt64Milliseconds(*delay)));
  }

  Backend backend;
  std::unique_ptr<server::GrpcServer> server;
  int port = 0;
  std::shared_ptr<grpc::Channel> channel;
};

}  // namespace longview::testing
