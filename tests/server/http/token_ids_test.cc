// Token ids on /v1/embeddings: ids of another tokenizer would be other words.
#include "gmock/gmock.h"
#include "tests/server/http/server_fixture.h"

namespace longview::testing {
namespace {

using ::testing::HasSubstr;

class TokenIdsTest : public HttpServerTest {
 protected:
  explicit TokenIdsTest(bool refuse = false)
      : HttpServerTest(
            [refuse](server::HttpServerOptions& options) { options.refuse_token_ids = refuse; }) {
    FakeOptions embeds;
    embeds.tasks = {models::Task::kEmbedding};
    backend_.store.Add("embed", embeds);
  }

  RawResponse Embed(std::string_view input) {
    return Post("/v1/embeddings",
                std::string(R"({"model":"embed","input":)").append(input).append("}"));
  }
};

TEST_F(TokenIdsTest, TheAnswerSaysHowTheyWereTaken) {
  for (const char* ids : {"[97,98]", "[[97],[98,99]]"}) {
    const RawResponse answer = Embed(ids);
    EXPECT_EQ(answer.status, 200) << ids;
    EXPECT_THAT(std::string(answer.Header("x-longview-warning")),
                HasSubstr("check_embedding_ctx_length=False"))
        << ids;
  }
  for (const char* texts : {R"("a")", R"(["a","b"])"}) {
    EXPECT_EQ(Embed(texts).Header("x-longview-warning"), "") << texts;
  }
}

class NoTokenIdsTest : public TokenIdsTest {
 protected:
  NoTokenIdsTest() : TokenIdsTest(/*refuse=*/true) {}
};

TEST_F(NoTokenIdsTest, AreRefusedByTheFlag) {
  const RawResponse refused = Embed("[97,98]");
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(Message(refused), HasSubstr("--refuse_token_ids"));
  EXPECT_EQ(Body(refused)["error"]["param"], "input");
  EXPECT_EQ(Embed(R"("a")").status, 200);
}

}  // namespace
}  // namespace longview::testing
