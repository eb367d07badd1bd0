// Only the server's own pages may load and unload models from a browser.
#include "server/http/origin.h"

#include "gmock/gmock.h"
#include "server/security/api_keys.h"
#include "tests/server/http/server_fixture.h"

namespace longview::testing {
namespace {

using ::testing::HasSubstr;

TEST(OriginCheckTest, HostsAreAddressesAndNamesTheServerHas) {
  const server::OriginCheck check({"models.example", "0.0.0.0"});
  for (const char* host :
       {"", "127.0.0.1", "127.0.0.1:8080", "10.1.2.3:80", "[::1]", "[::1]:8080", "[fe80::1]:1",
        "localhost", "LocalHost:8080", "models.example", "Models.Example:443", "0.0.0.0:1"}) {
    EXPECT_TRUE(check.Check(host, "").ok()) << host;
  }
  for (const char* host : {"evil.example", "evil.example:8080", "localhost.evil.example",
                           "127.0.0.1.evil.example", "models.example.", "1.2.3", "[::1", "::1",
                           "evil.example:models.example", "127.0.0.1@evil.example"}) {
    const absl::Status status = check.Check(host, "");
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << host;
    EXPECT_THAT(std::string(status.message()), HasSubstr("header Host")) << host;
  }
}

TEST(OriginCheckTest, OriginsAreTheHostItself) {
  const server::OriginCheck check({"models.example"});
  const auto ok = [&](const char* host, const char* origin) {
    return check.Check(host, origin).ok();
  };
  EXPECT_TRUE(ok("localhost:8080", "http://localhost:8080"));
  EXPECT_TRUE(ok("LOCALHOST:8080", "http://localhost:8080"));
  EXPECT_TRUE(ok("models.example", "https://models.example"));  // Behind a proxy with TLS.
  EXPECT_TRUE(ok("models.example:443", "https://models.example"));
  EXPECT_TRUE(ok("127.0.0.1", "http://127.0.0.1:80"));
  EXPECT_TRUE(ok("[::1]:8080", "http://[::1]:8080"));
  EXPECT_FALSE(ok("localhost:8080", "http://evil.example"));
  EXPECT_FALSE(ok("localhost:8080", "http://localhost:3000"));
  EXPECT_FALSE(ok("localhost:8080", "http://127.0.0.1:8080"));
  EXPECT_FALSE(ok("localhost:8080", "http://localhost.evil.example:8080"));
  EXPECT_FALSE(ok("localhost:8080", "null"));
  EXPECT_FALSE(ok("localhost:8080", "localhost:8080"));
  EXPECT_FALSE(ok("", "http://evil.example"));
}

class OriginTest : public HttpServerTest {
 protected:
  OriginTest()
      : HttpServerTest(
            [](server::HttpServerOptions& options) { options.names = {"models.example"}; }) {}

  // The status of unloading "one" with these header lines instead of the usual Host.
  int Unload(std::string_view lines) {
    RawClient client(port_);
    client.Send(std::string("POST /v2/repository/models/one/unload HTTP/1.1\r\n")
                    .append(lines)
                    .append("Content-Length: 0\r\n\r\n"));
    const auto response = client.Read();
    return response ? response->status : 0;
  }
};

TEST_F(OriginTest, APageOfAnotherSiteUnloadsNothing) {
  EXPECT_EQ(Unload("Host: localhost\r\nOrigin: http://evil.example\r\n"), 403);
  EXPECT_EQ(Unload("Host: localhost\r\nOrigin: null\r\n"), 403);
  EXPECT_EQ(Unload("Host: evil.example\r\nOrigin: http://evil.example\r\n"), 403);
  EXPECT_EQ(Unload("Host: evil.example:8080\r\n"), 403);
  EXPECT_EQ(Get("/v2/models/one/ready").status, 200);
  EXPECT_EQ(Unload("Host: Models.Example\r\nOrigin: https://models.example\r\n"), 200);
}

TEST_F(OriginTest, OtherPathsDoNotAsk) {
  const RawResponse answer =
      Fetch(port_, "POST", "/v1/classify", kClassify, "Origin: http://evil.example\r\n");
  EXPECT_EQ(answer.status, 200);
}

struct WithKeys {
  server::ApiKeys keys{*server::KeySet::Parse("search:secret\n")};
};

class KeyFirstTest : private WithKeys, public HttpServerTest {
 protected:
  KeyFirstTest()
      : HttpServerTest([this](server::HttpServerOptions& options) { options.keys = &keys; }) {}
};

TEST_F(KeyFirstTest, NoContinueAndNoBodyForAWrongKey) {
  RawClient client(port_);
  client.Send(
      "POST /v1/classify HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer wrong\r\n"
      "Expect: 100-continue\r\nContent-Length: 30\r\n\r\n");
  EXPECT_EQ(client.Read()->status, 401);
  RawClient large(port_);
  large.Send("POST /v1/classify HTTP/1.1\r\nHost: t\r\nContent-Length: 100000000\r\n\r\n");
  EXPECT_EQ(large.Read()->status, 401);
  RawClient known(port_);
  known.Send(
      "POST /v1/classify HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer secret\r\n"
      "Expect: 100-continue\r\nContent-Length: " +
      std::to_string(kClassify.size()) + "\r\n\r\n");
  EXPECT_EQ(known.Read()->status, 100);
}

}  // namespace
}  // namespace longview::testing
