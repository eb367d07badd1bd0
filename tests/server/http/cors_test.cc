// Pages of other sites: which may call, and what the others are told.
#include "gmock/gmock.h"
#include "server/security/api_keys.h"
#include "tests/server/http/server_fixture.h"

namespace longview::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kAsk =
    "Origin: https://page.example\r\nAccess-Control-Request-Method: POST\r\n"
    "Access-Control-Request-Headers: authorization,content-type\r\n";

struct WithAKey {
  server::ApiKeys keys{*server::KeySet::Parse("search:secret\n")};
};

class BrowserTest : private WithAKey, public HttpServerTest {
 protected:
  explicit BrowserTest(std::vector<std::string> origins = {"https://page.example"})
      : HttpServerTest([&](server::HttpServerOptions& options) {
          options.cors_origins = std::move(origins);
          options.keys = &keys;
        }) {}

  RawResponse Ask(std::string_view path, std::string_view headers = kAsk) {
    return Fetch(port_, "OPTIONS", path, "", headers);
  }
};

TEST_F(BrowserTest, APageOfTheListMayCall) {
  const RawResponse asked = Ask("/v1/classify");
  EXPECT_EQ(asked.status, 200);
  EXPECT_EQ(asked.body, "");
  EXPECT_EQ(asked.Header("Access-Control-Allow-Origin"), "https://page.example");
  EXPECT_EQ(asked.Header("Access-Control-Allow-Methods"), "POST");
  EXPECT_EQ(asked.Header("Access-Control-Allow-Headers"), "authorization,content-type");
  EXPECT_EQ(asked.Header("Vary"), "Origin");
  // Its call needs the key, and may read why it has none.
  const RawResponse called = Post("/v1/classify", kClassify, "Origin: https://page.example\r\n");
  EXPECT_EQ(called.status, 401);
  EXPECT_EQ(called.Header("Access-Control-Allow-Origin"), "https://page.example");
  EXPECT_THAT(std::string(called.Header("Access-Control-Expose-Headers")),
              HasSubstr("Retry-After"));
}

TEST_F(BrowserTest, OtherPagesMayNot) {
  for (const char* origin : {"https://page.example:8443", "http://page.example", "null",
                             "https://page.example.evil", "https://evil.example"}) {
    const std::string lines = std::string("Origin: ")
                                  .append(origin)
                                  .append("\r\nAccess-Control-Request-Method: POST\r\n");
    const RawResponse asked = Ask("/v1/classify", lines);
    EXPECT_EQ(asked.status, 403) << origin;
    EXPECT_EQ(asked.Header("Access-Control-Allow-Origin"), "") << origin;
    EXPECT_EQ(asked.Header("Vary"), "Origin") << origin;
    EXPECT_THAT(Message(asked), HasSubstr("--cors_origins")) << origin;
  }
}

TEST_F(BrowserTest, PagesOfOthersDoNotControlModels) {
  const RawResponse asked = Ask("/v2/repository/models/one/unload");
  EXPECT_EQ(asked.status, 403);
  EXPECT_THAT(Message(asked), HasSubstr("header Origin"));
}

TEST_F(BrowserTest, AnUnknownPathIsForThePageToRead) {
  const RawResponse asked = Ask("/v1/nothing");
  EXPECT_EQ(asked.status, 200);
  EXPECT_EQ(asked.Header("Access-Control-Allow-Methods"), "GET, HEAD, POST");
}

TEST_F(BrowserTest, OnlyABrowsersQuestionNeedsNoKey) {
  EXPECT_EQ(Ask("/v1/classify", "Origin: https://page.example\r\n").status, 401);
  EXPECT_EQ(Ask("/v1/classify", "Access-Control-Request-Method: POST\r\n").status, 401);
}

class AnyPageTest : public BrowserTest {
 protected:
  AnyPageTest() : BrowserTest({"*"}) {}
};

TEST_F(AnyPageTest, EveryPageMayCall) {
  EXPECT_EQ(Ask("/v1/classify").Header("Access-Control-Allow-Origin"), "*");
  const RawResponse called = Get("/livez");
  EXPECT_EQ(called.Header("Access-Control-Allow-Origin"), "") << "no page";
}

class NoPageTest : public BrowserTest {
 protected:
  NoPageTest() : BrowserTest({}) {}
};

TEST_F(NoPageTest, IsTheDefaultAndSaysSo) {
  const RawResponse asked = Ask("/v1/classify");
  EXPECT_EQ(asked.status, 403);
  EXPECT_EQ(asked.Header("Access-Control-Allow-Origin"), "");
  EXPECT_EQ(asked.Header("Vary"), "");
  EXPECT_THAT(Message(asked), HasSubstr("--cors_origins is not set"));
}

}  // namespace
}  // namespace longview::testing
