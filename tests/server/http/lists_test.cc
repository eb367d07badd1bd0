// Calls on many texts: lists on /v1, /v1/rerank, and the routes of text-embeddings-inference.
#include <cmath>

#include "gmock/gmock.h"
#include "tests/server/http/server_fixture.h"

namespace longview::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class ListsTest : public HttpServerTest {
 protected:
  ListsTest() {
    const auto add = [this](const char* name, std::vector<models::Task> tasks) {
      FakeOptions options;
      options.tasks = std::move(tasks);
      options.max_tokens = 40;
      backend_.store.Add(name, options);
    };
    add("embed", {models::Task::kEmbedding});
    add("mask", {models::Task::kFillMask});
    add("ner", {models::Task::kTokenClassification});
    add("rank", {models::Task::kRerank});
  }

  json Answer(const std::string& path, const json& body) {
    const RawResponse response = Post(path, body.dump());
    EXPECT_EQ(response.status, 200) << response.body;
    EXPECT_THAT(std::string(response.Header("Server-Timing")), HasSubstr("queue;dur="));
    return Body(response);
  }
};

TEST_F(ListsTest, ResultsAreWhatSingleCallsSay) {
  const json many =
      Answer("/v1/classify", {{"model", "one"}, {"text", {"a page", "b"}}, {"top_k", 2}});
  EXPECT_EQ(many["model"], "one");
  EXPECT_EQ(many["version"], "1");
  ASSERT_EQ(many["results"].size(), 2u);
  int64_t tokens = 0;
  for (size_t i = 0; i < 2; ++i) {
    const json one =
        Answer("/v1/classify", {{"model", "one"}, {"text", i == 0 ? "a page" : "b"}, {"top_k", 2}});
    const json& result = many["results"][i];
    EXPECT_EQ(result["labels"], one["labels"]);
    EXPECT_EQ(result["usage"], one["usage"]);
    EXPECT_TRUE(result.contains("timing"));
    EXPECT_FALSE(result.contains("model") || result.contains("version")) << result;
    tokens += one["usage"]["input_tokens"].get<int64_t>();
  }
  EXPECT_EQ(many["usage"]["input_tokens"], tokens);
  const json tagged = Answer("/v1/classify-tokens", {{"model", "ner"}, {"text", {"An Old tree"}}});
  EXPECT_EQ(tagged["results"][0]["entities"].size(), 2u);
  const json filled = Answer("/v1/fill-mask", {{"model", "mask"}, {"text", {"a_", "__"}}});
  EXPECT_EQ(filled["results"][1]["masks"].size(), 2u);
}

TEST_F(ListsTest, OneBadTextFailsTheCallWithItsIndex) {
  const std::string too_long(50, 'x');
  const RawResponse response =
      Post("/v1/classify", json{{"model", "ner"}, {"text", {"a", too_long}}}.dump());
  EXPECT_EQ(response.status, 400);
  const RawResponse bad =
      Post("/v1/classify-tokens", json{{"model", "ner"}, {"text", {"a", too_long}}}.dump());
  EXPECT_EQ(bad.status, 400);
  EXPECT_THAT(Message(bad), HasSubstr("text[1]: 50 tokens"));
  EXPECT_EQ(Body(bad)["error"]["param"], "text");
  EXPECT_THAT(Message(Post("/v1/classify", R"({"text": ["a", 7]})")), HasSubstr("text[1]"));
  EXPECT_THAT(Message(Post("/v1/classify", R"({"text": []})")), HasSubstr("text: has no elements"));
  EXPECT_EQ(Post("/v1/classify", R"({"text": [1, 2]})").status, 400);
  json many{{"model", "one"}, {"text", json::array()}};
  for (int i = 0; i < 1025; ++i) many["text"].push_back("a");
  EXPECT_THAT(Message(Post("/v1/classify", many.dump())), HasSubstr("1025 elements"));
}

TEST_F(ListsTest, PartialAnswersKeepTheOthers) {
  const json texts = {"An Oak", std::string(50, 'x'), 7, "b"};
  const json answer =
      Answer("/v1/classify-tokens", {{"model", "ner"}, {"partial", true}, {"text", texts}});
  ASSERT_EQ(answer["results"].size(), 4u);
  EXPECT_EQ(answer["results"][0]["entities"].size(), 2u);
  const json& error = answer["results"][1]["error"];
  EXPECT_EQ(error["code"], "INVALID_ARGUMENT");
  EXPECT_EQ(error["param"], "text");
  EXPECT_EQ(answer["results"][2]["error"]["type"], "invalid_request_error");
  EXPECT_EQ(answer["results"][3]["usage"]["input_tokens"], 1);
  EXPECT_EQ(answer["usage"]["input_tokens"], 7);
  // A bad option is wrong for all texts.
  EXPECT_EQ(Post("/v1/classify", R"({"text": ["a"], "partial": true, "top_k": -1})").status, 400);
  EXPECT_EQ(Post("/v1/classify", R"({"text": ["a"], "partial": 1})").status, 400);
  const json none =
      Answer("/v1/classify", {{"model", "one"}, {"partial", true}, {"text", {nullptr}}});
  EXPECT_TRUE(none["results"][0].contains("error"));
}

TEST_F(ListsTest, RerankSortsByScoreThenIndex) {
  json documents = {"b", "a", {{"text", "c"}}, "a"};
  const json body{{"model", "rank"}, {"query", "q"}, {"documents", documents}};
  const json answer = Answer("/v1/rerank", body);
  EXPECT_EQ(answer["model"], "rank");
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 8);
  EXPECT_EQ(answer["usage"]["total_tokens"], 8);
  ASSERT_EQ(answer["results"].size(), 4u);
  std::vector<int> same;
  for (size_t i = 0; i < 4; ++i) {
    const json& result = answer["results"][i];
    const int index = result["index"];
    const std::string text = index == 0 ? "qb" : index == 2 ? "qc" : "qa";
    EXPECT_NEAR(result["relevance_score"], std::tanh(FakeLogits(text, 1).front()), 1e-6);
    EXPECT_FALSE(result.contains("document"));
    if (i > 0) {
      EXPECT_LE(result["relevance_score"], answer["results"][i - 1]["relevance_score"]);
    }
    if (index % 2 == 1) same.push_back(index);
  }
  EXPECT_EQ(same, (std::vector<int>{1, 3}));

  json more = body;
  more.update({{"top_n", 2}, {"return_documents", true}, {"raw_scores", true}, {"user", "u"}});
  const json top = Answer("/v1/rerank", more);
  ASSERT_EQ(top["results"].size(), 2u);
  const int best = top["results"][0]["index"];
  EXPECT_EQ(top["results"][0]["document"]["text"], best == 0 ? "b" : best == 2 ? "c" : "a");
  EXPECT_NEAR(top["results"][0]["relevance_score"],
              std::atanh(answer["results"][0]["relevance_score"].get<double>()), 1e-4);
  more["top_n"] = 9;
  EXPECT_EQ(Answer("/v1/rerank", more)["results"].size(), 4u);
}

TEST_F(ListsTest, RerankRefusesWhatItCannotRank) {
  const auto refusal = [this](const char* change) {
    json body{{"model", "rank"}, {"query", "q"}, {"documents", {"a", "b"}}};
    body.update(json::parse(change));
    const RawResponse response = Post("/v1/rerank", body.dump());
    EXPECT_EQ(response.status, 400) << change << response.body;
    return Body(response)["error"];
  };
  EXPECT_EQ(refusal(R"({"documents": []})")["param"], "documents");
  EXPECT_EQ(refusal(R"({"documents": ["a", 3]})")["param"], "documents[1]");
  EXPECT_EQ(refusal(R"({"documents": null})")["param"], "documents");
  EXPECT_EQ(refusal(R"({"query": 1})")["param"], "query");
  EXPECT_EQ(refusal(R"({"top_n": 0})")["param"], "top_n");
  EXPECT_EQ(refusal(R"({"truncation_direction": "up"})")["param"], "truncation_direction");
  const json change{{"documents", {"a", std::string(60, 'x')}}};
  const json too_long = refusal(change.dump().c_str());
  EXPECT_EQ(too_long["param"], "documents");
  EXPECT_THAT(too_long["message"].get<std::string>(), HasSubstr("documents[1]: 61 tokens"));
  EXPECT_EQ(Post("/v1/rerank", R"({"model": "one", "query": "", "documents": [""]})").status, 400);
  // One empty string is a document.
  EXPECT_EQ(Answer("/v1/rerank", {{"query", "q"}, {"documents", {""}}})["results"].size(), 1u);
}

TEST_F(ListsTest, TeisRoutes) {
  const json vectors = Answer("/embed", {{"inputs", {"a", "b"}}, {"unknown", 1}});
  ASSERT_EQ(vectors.size(), 2u);
  EXPECT_TRUE(*backend_.last_request().normalize);
  EXPECT_EQ(Answer("/embed?model=embed", {{"inputs", "a"}, {"normalize", false}})[0], vectors[0]);
  EXPECT_FALSE(*backend_.last_request().normalize);
  EXPECT_EQ(backend_.last_request().truncate, std::nullopt);

  const json ranks = Answer("/rerank", {{"query", "q"},
                                        {"texts", {"a", "b"}},
                                        {"return_text", true},
                                        {"truncation_direction", "Left"}});
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0]["text"], ranks[0]["index"] == 0 ? "a" : "b");
  EXPECT_GE(ranks[0]["score"], ranks[1]["score"]);
  EXPECT_EQ(backend_.last_request().truncation_direction, "left");

  const json one = Answer("/predict", {{"model", "one"}, {"inputs", "abc"}});
  ASSERT_EQ(one.size(), 3u);
  EXPECT_GE(one[0]["score"], one[1]["score"]);
  EXPECT_EQ(Answer("/predict", {{"model", "one"}, {"inputs", {"abc"}}}), one);
  const json raw =
      Answer("/predict", {{"model", "one"}, {"inputs", {{"abc"}}}, {"raw_scores", true}});
  ASSERT_EQ(raw.size(), 1u);
  EXPECT_EQ(raw[0][0]["label"], one[0]["label"]);
  const std::vector<float> logits = FakeLogits("abc", 3);
  EXPECT_EQ(raw[0][0]["score"].get<float>(), *std::max_element(logits.begin(), logits.end()));
}

TEST_F(ListsTest, TeisErrors) {
  const RawResponse missing = Post("/embed", "{}");
  EXPECT_EQ(missing.status, 400);
  EXPECT_EQ(Body(missing)["error_type"], "invalid_request_error");
  EXPECT_THAT(Message(missing), HasSubstr("inputs"));
  const RawResponse too_long = Post("/embed", json{{"inputs", {"a", std::string(50, 'x')}}}.dump());
  EXPECT_THAT(Message(too_long), HasSubstr("inputs[1]: 50 tokens"));
  EXPECT_THAT(Message(Post("/embed", json{{"inputs", std::string(50, 'x')}}.dump())),
              HasSubstr("inputs: 50 tokens"));
  const RawResponse none = Post("/rerank", R"({"query": "q", "texts": ["a"], "model": "none"})");
  EXPECT_EQ(Body(none)["error_type"], "not_found_error");
  EXPECT_EQ(Post("/predict", R"({"inputs": ["a", "b", "c"]})").status, 400);
  EXPECT_EQ(Post("/predict", R"({"inputs": []})").status, 400);
  backend_.store.Add("two", FakeOptions{});
  EXPECT_THAT(Message(Post("/predict", R"({"inputs": "a"})")), HasSubstr("model: "));
}

TEST_F(ListsTest, EmbeddingsNameTheirField) {
  const RawResponse one =
      Post("/v1/embeddings", json{{"model", "embed"}, {"input", std::string(50, 'x')}}.dump());
  EXPECT_EQ(Body(one)["error"]["param"], "input");
  EXPECT_THAT(Message(one), HasSubstr("input: 50 tokens"));
}

}  // namespace
}  // namespace longview::testing
