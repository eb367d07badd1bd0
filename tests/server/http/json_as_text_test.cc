// JSON that calls itself text, as browsers send it where a page names no type.
#include "gmock/gmock.h"
#include "tests/server/http/server_fixture.h"

namespace longview::testing {
namespace {

using ::testing::HasSubstr;

class FetchTest : public HttpServerTest {
 protected:
  static constexpr char kText[] = "Content-Type: text/plain;charset=UTF-8\r\n";
  static constexpr char kBytes[] = "Content-Type: application/octet-stream\r\n";
};

TEST_F(FetchTest, JsonThatCallsItselfTextIsRefused) {
  for (const char* body : {R"({"model":"one","text":"a page"})", R"( {"text":"a page"} )",
                           R"({"x":{"y":[1]},"top_k":3})", R"({"image":"aGk="})",
                           R"({"text":["a","b"],"partial":true})"}) {
    const RawResponse response = Post("/v1/classify?model=one", body, kText);
    EXPECT_EQ(response.status, 400) << body;
    EXPECT_THAT(Message(response), HasSubstr("send Content-Type: application/json")) << body;
    EXPECT_EQ(Body(response)["error"]["param"], "Content-Type") << body;
    EXPECT_EQ(Post("/v1/classify?model=one", body, kBytes).status, 200) << body;
  }
}

TEST_F(FetchTest, TextThatLooksAlikeIsText) {
  for (const char* body : {"{}", R"({"name":"one"})", R"({"inner":{"text":"a"}})",
                           R"([{"text":"a"}])", R"("text")", R"({"text":"a"} and more)",
                           R"({"text":"a")", R"({"text":})", "{", "  ", "if (a) { b(); }"}) {
    const RawResponse response = Post("/v1/classify?model=one", body, kText);
    EXPECT_EQ(response.status, 200) << body << "\n" << response.body;
  }
}

TEST_F(FetchTest, BytesAreAPictureWhereARouteTakesNoText) {
  FakeOptions sees;
  sees.tasks = {models::Task::kObjectDetection};
  backend_.store.Add("sees", sees);
  const RawResponse picture = Post("/v1/detect?model=sees", "\x89PNG", kBytes);
  EXPECT_EQ(picture.body,
            Post("/v1/detect?model=sees", "\x89PNG", "Content-Type: image/png\r\n").body);
}

}  // namespace
}  // namespace longview::testing
