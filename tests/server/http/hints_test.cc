// Errors that say what to do instead.
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/server/http/server_fixture.h"

namespace longview::testing {
namespace {

using ::testing::HasSubstr;

class HintsTest : public HttpServerTest {
 protected:
  HintsTest() {
    FakeOptions answers;
    answers.tasks = {models::Task::kQuestionAnswering};
    backend_.store.Add("qa", answers);
  }
};

TEST_F(HintsTest, ABodyThatIsNoJsonIsToldItsHeader) {
  static constexpr char kForm[] = "Content-Type: application/x-www-form-urlencoded\r\n";
  const std::string png("\x89PNG\r\n\x1a\n and so on"), jpeg("\xff\xd8\xff and so on");
  struct Case {
    const char* path;
    std::string body;
    const char* headers;
    const char* header_to_send;  // "" = none is named.
  };
  const std::vector<Case> cases = {
      {"/v1/classify?model=one", "int main() {}", kForm, "-H 'Content-Type: text/plain'"},
      {"/v1/classify?model=one", "int main() {}", "", "-H 'Content-Type: text/plain'"},
      {"/v1/classify?model=one", png, kForm, "-H 'Content-Type: image/png'"},
      {"/v1/classify?model=one", jpeg, kForm, "-H 'Content-Type: image/jpeg'"},
      {"/v1/detect?model=one", "RIFF....WEBPVP8 ", kForm, "-H 'Content-Type: image/webp'"},
      {"/v1/detect?model=one", "RIFF", kForm, "-H 'Content-Type: image/jpeg, image/png or"},
      {"/v1/answer?model=qa", png, kForm, "-H 'Content-Type: text/plain'"},
      {"/v1/classify?model=one", "{", "Content-Type: application/json\r\n", ""},
      {"/v1/embeddings", "int main() {}", kForm, ""},
  };
  for (const Case& each : cases) {
    const RawResponse response = Post(each.path, each.body, each.headers);
    EXPECT_EQ(response.status, 400) << each.path;
    const std::string message = Body(response)["error"]["message"];
    EXPECT_THAT(message, HasSubstr("not valid JSON"));
    EXPECT_THAT(message, HasSubstr(each.header_to_send));
    EXPECT_EQ(message.find("Content-Type") == std::string::npos, !*each.header_to_send) << message;
  }
}

TEST_F(HintsTest, ExtensionsThatAreNotServedSayWhatToUseInstead) {
  for (const auto& [path, part] : std::vector<std::pair<const char*, const char*>>{
           {"/v2/logging", "--log_level"},
           {"/v2/trace/setting", "--otlp_endpoint"},
           {"/v2/models/one/trace/setting", "--otlp_endpoint"},
           {"/v2/systemsharedmemory/status", "send tensors in the request"},
           {"/v2/cudasharedmemory/region/r/register", "send tensors in the request"}}) {
    for (const RawResponse& response : {Get(path), Post(path, "{}")}) {
      EXPECT_EQ(response.status, 404) << path;
      EXPECT_THAT(std::string(Body(response)["error"]), HasSubstr(part)) << path;
    }
  }
}

TEST_F(HintsTest, TheNearestModelNameIsOffered) {
  backend_.store.Add("code-language", {});
  for (const RawResponse& response :
       {Post("/v1/classify", R"({"model":"code-languge","text":"a"})"),
        Get("/v2/models/code-languge"), Get("/v1/models/code-languge")}) {
    EXPECT_EQ(response.status, 404);
    EXPECT_THAT(response.body, HasSubstr("did you mean code-language?"));
  }
}

}  // namespace
}  // namespace longview::testing
