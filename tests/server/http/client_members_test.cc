// Members that clients of other servers send, and the routes that are theirs.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "tests/server/http/server_fixture.h"

namespace longview::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class ClientMembersTest : public HttpServerTest {
 protected:
  ClientMembersTest() {
    const auto add = [this](const char* name, models::Task task) {
      FakeOptions options;
      options.tasks = {task};
      options.max_tokens = 40;
      backend_.store.Add(name, options);
    };
    add("embed", models::Task::kEmbedding);
    add("rank", models::Task::kRerank);
  }

  json Answer(const std::string& path, const json& body) {
    const RawResponse response = Post(path, body.dump());
    EXPECT_EQ(response.status, 200) << path << " " << body << "\n" << response.body;
    return Body(response);
  }
  json Refusal(const std::string& path, const json& body) {
    const RawResponse response = Post(path, body.dump());
    EXPECT_EQ(response.status, 400) << path << " " << body << "\n" << response.body;
    return Body(response);
  }
  models::Request Last() { return backend_.last_request(); }
};

// ---- rerank and score ----

TEST_F(ClientMembersTest, RerankTakesWhatCohereSends) {
  const json documents = {"b", {{"text", "a"}, {"title", "t"}, {"page", 7}}, "c"};
  const json plain = Answer("/v1/rerank", {{"query", "q"}, {"documents", {"b", "a", "c"}}});
  const json answer = Answer("/v1/rerank", {{"query", "q"},
                                            {"documents", documents},
                                            {"max_tokens_per_doc", nullptr},
                                            {"priority", 3},
                                            {"rank_fields", {"text"}},
                                            {"max_chunks_per_doc", 10},
                                            {"return_documents", true}});
  ASSERT_EQ(answer["results"].size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(answer["results"][i]["index"], plain["results"][i]["index"]);
    EXPECT_EQ(answer["results"][i]["relevance_score"], plain["results"][i]["relevance_score"]);
    const size_t index = answer["results"][i]["index"];
    const json sent =
        documents[index].is_string() ? json{{"text", documents[index]}} : documents[index];
    EXPECT_EQ(answer["results"][i]["document"], sent);
  }
  EXPECT_EQ(Last().pair_tokens, std::nullopt);
  Answer("/v2/rerank", {{"query", "q"}, {"documents", {"a"}}, {"max_tokens_per_doc", 5}});
  EXPECT_EQ(Last().pair_tokens, 5);
}

TEST_F(ClientMembersTest, RankFieldsAreTheText) {
  const json document = {{"text", "x"}, {"title", "a"}, {"page", 7}};
  Answer("/v1/rerank",
         {{"query", "q"}, {"documents", {document}}, {"rank_fields", {"title", "page", "none"}}});
  EXPECT_EQ(Last().text_pair, "a\n7");
  Answer("/v1/rerank", {{"query", "q"}, {"documents", {document}}, {"rank_fields", {"none"}}});
  EXPECT_EQ(Last().text_pair, "x");
}

TEST_F(ClientMembersTest, RerankAnswersWithIdAndMeta) {
  const json one =
      Body(Post("/v1/rerank", R"({"query":"q","documents":["a"]})", "x-request-id: mine\r\n"));
  EXPECT_EQ(one["id"], "rerank-mine");
  EXPECT_EQ(one["meta"], json::parse(R"({"api_version": {"version": "1"},
                                         "billed_units": {"search_units": 1}})"));
  for (const auto& [count, units] : {std::pair(100, 1), std::pair(101, 2)}) {
    json body = {{"query", "q"}, {"documents", json::array()}};
    for (int i = 0; i < count; ++i) body["documents"].push_back("a");
    const json answer = Answer("/v2/rerank", body);
    EXPECT_EQ(answer["meta"]["api_version"]["version"], "2");
    EXPECT_EQ(answer["meta"]["billed_units"]["search_units"], units);
    EXPECT_TRUE(answer["id"].is_string());
  }
}

TEST_F(ClientMembersTest, ErrorsOnCoheresPathsHaveAMessage) {
  for (const char* path : {"/v1/rerank", "/v1/embed"}) {
    const json error = Refusal(path, json::object());
    EXPECT_EQ(error["message"], error["error"]["message"]) << path;
    EXPECT_TRUE(error["error"].contains("param"));
  }
  for (const char* path : {"/v2/rerank", "/v2/embed"}) {
    const json error = Refusal(path, json::object());
    EXPECT_TRUE(error["message"].is_string()) << path;
    EXPECT_EQ(error["message"], error["error"]) << path;
  }
}

TEST_F(ClientMembersTest, RerankRefusesByName) {
  const auto refusal = [this](const char* change) {
    json body{{"query", "q"}, {"documents", {"a"}}};
    body.update(json::parse(change));
    return Refusal("/v1/rerank", body)["error"];
  };
  EXPECT_EQ(refusal(R"({"max_tokens_per_doc": 0})")["param"], "max_tokens_per_doc");
  EXPECT_EQ(refusal(R"({"rank_fields": "text"})")["param"], "rank_fields");
  EXPECT_EQ(refusal(R"({"rank_fields": [1]})")["param"], "rank_fields[0]");
  EXPECT_EQ(refusal(R"({"documents": [{"title": "b"}]})")["param"], "documents[0].text");
  EXPECT_EQ(refusal(R"({"relevant_spans": {}})")["param"], "relevant_spans");
  const json unknown = refusal(R"({"topn": 1})");
  EXPECT_EQ(unknown["param"], "topn");
  EXPECT_THAT(unknown["message"].get<std::string>(), HasSubstr("did you mean top_n?"));
}

TEST_F(ClientMembersTest, RerankWithoutVersionHasBothForms) {
  const json jina = Answer("/rerank", {{"query", "q"}, {"documents", {"a", "b"}}, {"top_n", 1}});
  EXPECT_EQ(jina["results"].size(), 1u);
  EXPECT_TRUE(jina["results"][0].contains("relevance_score"));
  const json tei =
      Answer("/rerank?model=rank", {{"query", "q"}, {"texts", {"a", "b"}}, {"documents", nullptr}});
  EXPECT_EQ(tei[0]["index"], jina["results"][0]["index"]);
  EXPECT_EQ(tei[0]["score"], jina["results"][0]["relevance_score"]);
  const json both = {{"query", "q"}, {"texts", {"a"}}, {"documents", {"a"}}};
  EXPECT_THAT(Refusal("/rerank", both)["error"].get<std::string>(), HasSubstr("documents"));
}

TEST_F(ClientMembersTest, ScorePairs) {
  const auto score = [](const std::string& pair) { return std::tanh(FakeLogits(pair, 1).front()); };
  const json many = Answer("/score", {{"text_1", "q"}, {"text_2", {"a", "b"}}, {"user", "u"}});
  EXPECT_EQ(many["model"], "rank");
  EXPECT_EQ(many["object"], "list");
  ASSERT_EQ(many["data"].size(), 2u);
  EXPECT_EQ(many["data"][1]["index"], 1);
  EXPECT_NEAR(many["data"][0]["score"], score("qa"), 1e-6);
  EXPECT_NEAR(many["data"][1]["score"], score("qb"), 1e-6);
  EXPECT_EQ(many["usage"]["prompt_tokens"], 4);
  const json pairs = Answer("/score", {{"text_1", {"q", "p"}}, {"text_2", {"a", "b"}}});
  EXPECT_NEAR(pairs["data"][1]["score"], score("pb"), 1e-6);
  const json one = Answer("/score", {{"text_1", "q"}, {"text_2", "a"}, {"raw_scores", true}});
  EXPECT_NEAR(one["data"][0]["score"], FakeLogits("qa", 1).front(), 1e-6);
}

TEST_F(ClientMembersTest, ScoreRefusals) {
  const auto param = [this](const json& body) { return Refusal("/score", body)["error"]["param"]; };
  EXPECT_EQ(param({{"text_1", {"a", "b"}}, {"text_2", {"a", "b", "c"}}}), "text_2");
  EXPECT_EQ(param({{"text_1", {"a", "b"}}, {"text_2", "c"}}), "text_2");
  EXPECT_EQ(param({{"text_1", "a"}}), "text_2");
  EXPECT_EQ(param({{"text_1", "a"}, {"text_2", json::array()}}), "text_2");
  EXPECT_EQ(param({{"text_1", "a"}, {"text_2", {"b", 1}}}), "text_2[1]");
  EXPECT_EQ(param({{"text_1", "a"}, {"text_2", "b"}, {"top_n", 1}}), "top_n");
  const json long_pair = {{"text_1", "a"}, {"text_2", {"b", std::string(60, 'x')}}};
  EXPECT_THAT(Refusal("/score", long_pair)["error"]["message"].get<std::string>(),
              HasSubstr("text_2[1]: 61 tokens"));
}

// ---- embeddings ----

TEST_F(ClientMembersTest, EmbeddingsTakeWhatJinaSends) {
  const json plain = Answer("/v1/embeddings", {{"input", {"a", "b"}}});
  EXPECT_THAT(plain["id"].get<std::string>(), HasSubstr("embd-"));
  const json answer = Answer("/v1/embeddings", {{"input", {{{"text", "a"}}, "b"}},
                                                {"normalized", true},
                                                {"task", "retrieval.query"},
                                                {"embedding_type", "float"},
                                                {"late_chunking", false}});
  EXPECT_EQ(answer["data"], plain["data"]);
  EXPECT_EQ(Last().normalize, true);
  EXPECT_EQ(Last().prompt_choices, (std::vector<std::string>{"retrieval.query", "query"}));
  for (const char* name : {"normalized", "task", "embedding_type", "late_chunking"}) {
    EXPECT_EQ(Answer("/v1/embeddings", {{"input", {"a", "b"}}, {name, nullptr}})["data"],
              plain["data"]);
  }
  const auto param = [this](const char* change) {
    json body{{"input", {"a", "b"}}};
    body.update(json::parse(change));
    return Refusal("/v1/embeddings", body)["error"]["param"];
  };
  EXPECT_EQ(param(R"({"normalized": true, "normalize": true})"), "normalized");
  EXPECT_EQ(param(R"({"embedding_type": "float", "encoding_format": "float"})"), "encoding_format");
  EXPECT_EQ(param(R"({"embedding_type": "half"})"), "embedding_type");
  EXPECT_EQ(param(R"({"late_chunking": true, "chunk_tokens": 4})"), "late_chunking");
  EXPECT_EQ(param(R"({"late_chunking": true, "input": [[1, 2], [3]]})"), "late_chunking");
}

TEST_F(ClientMembersTest, BitsOfSigns) {
  const json plain = Answer("/v1/embeddings", {{"input", "abc"}});
  int bits = 0;
  for (size_t i = 0; i < 4; ++i) {
    if (plain["data"][0]["embedding"][i].get<double>() > 0) bits += 128 >> i;
  }
  const auto form = [this](const json& name) {
    return Answer("/v1/embeddings",
                  {{"input", "abc"}, {"embedding_type", name}})["data"][0]["embedding"];
  };
  EXPECT_EQ(form("ubinary"), json::array({bits}));
  EXPECT_EQ(form({"binary"}), json::array({bits - 128}));
}

TEST_F(ClientMembersTest, CoheresEmbed) {
  const json plain = Answer("/v1/embeddings", {{"input", {"abc", "d"}}});
  const json answer =
      Answer("/v2/embed", {{"model", "embed"},
                           {"texts", {"abc", "d"}},
                           {"input_type", "search_document"},
                           {"embedding_types", {"float", "int8", "uint8", "base64", "float"}},
                           {"truncate", "START"},
                           {"priority", 1},
                           {"images", nullptr}});
  EXPECT_EQ(Last().prompt_choices,
            (std::vector<std::string>{"search_document", "document", "passage"}));
  EXPECT_EQ(Last().truncate, true);
  EXPECT_EQ(Last().truncation_direction, "left");
  EXPECT_EQ(answer["texts"], (json{"abc", "d"}));
  EXPECT_EQ(answer["response_type"], "embeddings_by_type");
  EXPECT_EQ(answer["meta"]["api_version"]["version"], "2");
  EXPECT_EQ(answer["meta"]["billed_units"]["input_tokens"], 4);
  EXPECT_EQ(answer["meta"]["tokens"], answer["meta"]["billed_units"]);
  EXPECT_EQ(answer["embeddings"].size(), 4u);
  const json& floats = answer["embeddings"]["float"];
  double largest = 0;
  for (const json& value : floats[0]) largest = std::max(largest, std::abs(value.get<double>()));
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(floats[i], plain["data"][i]["embedding"]);
  for (size_t i = 0; i < floats[0].size(); ++i) {
    const int rounded =
        static_cast<int>(std::nearbyint(127 * floats[0][i].get<double>() / largest));
    EXPECT_EQ(answer["embeddings"]["int8"][0][i], rounded);
    EXPECT_EQ(answer["embeddings"]["uint8"][0][i], rounded + 128);
  }
  std::string bytes;
  ASSERT_TRUE(absl::Base64Unescape(answer["embeddings"]["base64"][1].get<std::string>(), &bytes));
  EXPECT_EQ(bytes.size(), 4 * floats[1].size());

  EXPECT_EQ(Answer("/v2/embed", {{"texts", {"abc", "d"}}})["embeddings"]["float"], floats);
  EXPECT_EQ(Last().truncate, std::nullopt);
  const json first = Answer("/v1/embed", {{"texts", {"abc", "d"}}, {"truncate", "NONE"}});
  EXPECT_EQ(first["embeddings"], floats);
  EXPECT_EQ(first["response_type"], "embeddings_floats");
  EXPECT_EQ(first["meta"]["api_version"]["version"], "1");
  EXPECT_EQ(Last().truncate, false);
}

TEST_F(ClientMembersTest, CoheresEmbedRefusals) {
  const auto message = [this](const json& body) {
    return Refusal("/v2/embed", body)["message"].get<std::string>();
  };
  EXPECT_THAT(message({{"texts", json::array()}}), HasSubstr("texts: "));
  EXPECT_THAT(message({{"texts", {"a", 1}}}), HasSubstr("texts[1]: "));
  EXPECT_THAT(message({{"texts", {"a"}}, {"truncate", "LEFT"}}), HasSubstr("truncate: "));
  EXPECT_THAT(message({{"texts", {"a"}}, {"images", {"b"}}}), HasSubstr("images: "));
  EXPECT_THAT(message({{"texts", {"a"}}, {"embedding_types", {"int4"}}}),
              HasSubstr("embedding_types[0]: "));
  EXPECT_THAT(message({{"texts", {"a", std::string(60, 'x')}}}), HasSubstr("texts[1]: 60 tokens"));
  EXPECT_THAT(message({{"texts", {"a"}}, {"max_tokens", 5}}), HasSubstr("max_tokens: "));
}

TEST_F(ClientMembersTest, Ollama) {
  const json plain = Answer("/v1/embeddings", {{"input", {"abc", "d"}}});
  const json answer = Answer("/api/embed", {{"model", "embed:latest"},
                                            {"input", {"abc", "d"}},
                                            {"options", {{"num_ctx", 5}}},
                                            {"keep_alive", "5m"}});
  EXPECT_EQ(answer["model"], "embed");
  EXPECT_EQ(answer["embeddings"][1], plain["data"][1]["embedding"]);
  EXPECT_EQ(answer["prompt_eval_count"], 4);
  EXPECT_EQ(Last().truncate, true);
  EXPECT_EQ(Answer("/api/embed", {{"input", "abc"}, {"truncate", nullptr}})["embeddings"].size(),
            1u);
  EXPECT_EQ(Last().truncate, true);
  Answer("/api/embed", {{"input", "abc"}, {"truncate", false}, {"dimensions", 4}});
  EXPECT_EQ(Last().truncate, false);
  EXPECT_EQ(Last().dimensions, 4);
  EXPECT_EQ(Answer("/api/embeddings", {{"prompt", "abc"}})["embedding"],
            plain["data"][0]["embedding"]);

  EXPECT_EQ(Body(Get("/api/version"))["version"], "1.2.3");
  const json tags = Body(Get("/api/tags"))["models"];
  ASSERT_EQ(tags.size(), 3u);
  EXPECT_EQ(tags[0]["name"], "embed");
  EXPECT_EQ(tags[0]["model"], "embed");
  for (const char* path : {"/api/show", "/api/chat", "/api"}) {
    const RawResponse response = Post(path, "{}");
    EXPECT_EQ(response.status, 404) << path;
    EXPECT_TRUE(Body(response)["error"].is_string()) << response.body;
  }
  EXPECT_TRUE(Refusal("/api/embed", {{"model", "embed"}})["error"].is_string());
  EXPECT_EQ(Post("/api/embed", R"({"model": "nobody", "input": "a"})").status, 404);
}

// ---- text-embeddings-inference, as the Hugging Face client calls it ----

TEST_F(ClientMembersTest, TokenIdsInTeisEmbed) {
  const json text = Answer("/embed", {{"inputs", "abc"}});
  EXPECT_EQ(Answer("/embed", {{"inputs", {97, 98, 99}}}), text);
  EXPECT_EQ(Answer("/embed", {{"inputs", {{97}, {97, 98, 99}}}})[1], text[0]);
  EXPECT_THAT(Refusal("/embed", {{"inputs", {{97}, json::array()}}})["error"].get<std::string>(),
              HasSubstr("inputs[1]"));
}

TEST_F(ClientMembersTest, ParametersStandBesideInputs) {
  Answer("/embed", {{"inputs", "abc"},
                    {"unknown", 1},
                    {"parameters",
                     {{"normalize", false},
                      {"truncate", true},
                      {"prompt_name", nullptr},
                      {"truncation_direction", "Left"}}}});
  EXPECT_EQ(Last().normalize, false);
  EXPECT_EQ(Last().truncate, true);
  EXPECT_EQ(Last().truncation_direction, "left");
  const auto error = [this](const char* path, const json& body) {
    return Refusal(path, body)["error"].get<std::string>();
  };
  EXPECT_THAT(error("/embed", {{"inputs", "a"}, {"parameters", {{"unknown", 1}}}}),
              HasSubstr("parameters.unknown: unknown member"));
  EXPECT_THAT(
      error("/embed", {{"inputs", "a"}, {"truncate", true}, {"parameters", {{"truncate", true}}}}),
      HasSubstr("parameters.truncate: given beside truncate"));
  EXPECT_THAT(error("/embed", {{"inputs", "a"}, {"parameters", 5}}), HasSubstr("parameters: "));
  const json texts = {{"query", "q"}, {"texts", {"a"}}, {"parameters", {{"return_text", true}}}};
  EXPECT_EQ(Answer("/rerank", texts)[0]["text"], "a");
  const json inputs = {{"source_sentence", "a"}, {"sentences", {"b"}}};
  EXPECT_EQ(Answer("/similarity", {{"inputs", inputs}, {"truncate", true}}).size(), 1u);
  EXPECT_EQ(Last().truncate, true);
}

TEST_F(ClientMembersTest, WhatWouldChangeTheAnswerIsNotIgnored) {
  const json inputs = {{"source_sentence", "a"}, {"sentences", {"b"}}};
  const std::pair<const char*, json> bodies[] = {{"/predict", {{"inputs", "a"}, {"model", "one"}}},
                                                 {"/embed", {{"inputs", "a"}}},
                                                 {"/similarity", {{"inputs", inputs}}},
                                                 {"/rerank", {{"query", "q"}, {"texts", {"a"}}}}};
  for (const auto& [path, body] : bodies) {
    Answer(path, body);
    for (const bool nested : {false, true}) {
      json with = body;
      (nested ? with["parameters"] : with)["candidate_labels"] = {"x", "y"};
      EXPECT_THAT(Refusal(path, with)["error"].get<std::string>(),
                  HasSubstr("candidate_labels: zero-shot"));
    }
    json null = body;
    null["parameters"] = {{"candidate_labels", nullptr}};
    Answer(path, null);
  }
}

TEST_F(ClientMembersTest, PredictAppliesFunctions) {
  const auto predict = [this](const json& parameters) {
    return Answer("/predict", {{"model", "one"}, {"inputs", "abc"}, {"parameters", parameters}});
  };
  const json raw = predict({{"function_to_apply", "none"}});
  const json softmax = predict({{"function_to_apply", "softmax"}});
  const json sigmoid = predict({{"function_to_apply", "sigmoid"}, {"top_k", 2}});
  ASSERT_EQ(raw.size(), 3u);
  ASSERT_EQ(sigmoid.size(), 2u);
  double sum = 0;
  for (const json& entry : raw) sum += std::exp(entry["score"].get<double>());
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(softmax[i]["label"], raw[i]["label"]);
    const double logit = raw[i]["score"];
    EXPECT_NEAR(softmax[i]["score"], std::exp(logit) / sum, 1e-6);
    EXPECT_NEAR(sigmoid[i]["score"], 1 / (1 + std::exp(-logit)), 1e-6);
  }
  EXPECT_THAT(Refusal("/predict", {{"model", "one"}, {"inputs", "a"}, {"top_k", 0}})["error"]
                  .get<std::string>(),
              HasSubstr("top_k"));
}

// ---- null ----

TEST_F(ClientMembersTest, NullIsAbsentOnEveryRoute) {
  const std::pair<const char*, json> bodies[] = {
      {"/v1/classify", {{"model", "one"}, {"text", "a"}, {"image", nullptr}, {"top_k", nullptr}}},
      {"/v1/embeddings", {{"input", "a"}, {"unknown", nullptr}, {"dimensions", nullptr}}},
      {"/v1/rerank", {{"query", "q"}, {"documents", {"a"}}, {"model", nullptr}, {"x", nullptr}}},
      {"/v2/embed", {{"texts", {"a"}}, {"embedding_types", nullptr}}},
      {"/score", {{"text_1", "a"}, {"text_2", "b"}, {"model", nullptr}}},
      {"/embed", {{"inputs", "a"}, {"parameters", nullptr}}},
      {"/api/embed", {{"input", "a"}, {"options", nullptr}}},
      {"/v1/estimate", {{"model", "one"}, {"num_tokens", 5}, {"text", nullptr}}},
      {"/v2/models/one/infer",
       {{"id", nullptr},
        {"parameters", nullptr},
        {"inputs",
         {{{"name", "text"},
           {"datatype", "BYTES"},
           {"shape", {1}},
           {"data", {"a"}},
           {"parameters", nullptr}}}}}},
  };
  for (const auto& [path, body] : bodies) Answer(path, body);
}

}  // namespace
}  // namespace longview::testing
