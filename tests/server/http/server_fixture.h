// The HTTP server in this process, in front of fake models.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "server/http/serve/http_server.h"
#include "tests/server/api/backend.h"
#include "tests/server/http/raw_client.h"

namespace longview::testing {

class HttpServerTest : public ::testing::Test {
 protected:
  static constexpr size_t kMaxBody = 200000;

  // `change` is applied to the options of the server.
  explicit HttpServerTest(absl::FunctionRef<void(server::HttpServerOptions&)> change = [](auto&) {
  }) {
    server::HttpServerOptions options;
    options.version = "1.2.3";
    options.commit = "abc";
    options.transport.port = 0;
    options.transport.threads = 2;
    options.transport.max_body_bytes = kMaxBody;
    options.transport.half_close_probe = absl::Milliseconds(20);
    change(options);
    server_ =
        std::make_unique<server::HttpServer>(backend_.api, backend_.metrics, std::move(options));
    const absl::StatusOr<int> port = server_->Start();
    EXPECT_TRUE(port.ok()) << port.status();
    port_ = port.value_or(0);
  }
  ~HttpServerTest() override {
    backend_.control->advance.Open();
    server_->Stop(server::SteadyNow() + absl::Seconds(5));
  }

  // Waits until `condition` holds; false after 20 s.
  template <typename Condition>
  static bool Eventually(Condition condition) {
    const absl::Time end = server::SteadyNow() + absl::Seconds(20);
    while (!condition()) {
      if (server::SteadyNow() > end) return false;
      absl::SleepFor(absl::Milliseconds(1));
    }
    return true;
  }

  RawResponse Get(std::string_view target) { return Fetch(port_, "GET", target); }
  RawResponse Post(std::string_view target, std::string_view body, std::string_view headers = "") {
    return Fetch(port_, "POST", target, body, headers);
  }
  static nlohmann::json Body(const RawResponse& response) {
    return nlohmann::json::parse(response.body, nullptr, false);
  }
  // The message of an error in either shape.
  static std::string Message(const RawResponse& response) {
    const nlohmann::json body = Body(response);
    if (!body.is_object() || !body.contains("error")) return "(no error) " + response.body;
    const nlohmann::json& error = body["error"];
    return error.is_string() ? error.get<std::string>() : error["message"].get<std::string>();
  }

  static constexpr std::string_view kClassify = R"({"model":"one","text":"a page"})";
  // A whole request with a body, for clients that write their own bytes.
  static std::string Request(std::string_view target, std::string_view body,
                             std::string_view headers = "") {
    return std::string("POST ")
        .append(target)
        .append(" HTTP/1.1\r\nHost: localhost\r\n")
        .append(headers)
        .append("Content-Length: ")
        .append(std::to_string(body.size()))
        .append("\r\n\r\n")
        .append(body);
  }

  Backend backend_;
  std::unique_ptr<server::HttpServer> server_;
  int port_ = 0;
};

// A server that soon loses patience with a client, for tests of just that.
class ImpatientServerTest : public HttpServerTest {
 protected:
  static constexpr absl::Duration kPatience = absl::Milliseconds(100);
  static constexpr absl::Duration kIdlePatience = absl::Milliseconds(300);

  explicit ImpatientServerTest(absl::FunctionRef<void(server::HttpServerOptions&)> change =
                                   [](auto&) {})
      : HttpServerTest([&](server::HttpServerOptions& options) {
          options.transport.idle_timeout = kIdlePatience;
          options.transport.header_timeout = kPatience;
          options.transport.transfer_grace = kPatience;
          change(options);
        }) {}
};

}  // namespace longview::testing
