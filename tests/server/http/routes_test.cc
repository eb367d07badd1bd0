// Every path: what it answers, and how it refuses.
#include <cstring>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "tests/server/http/server_fixture.h"

namespace longview::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class RoutesTest : public HttpServerTest {
 protected:
  RoutesTest() {
    const auto add = [this](const char* name, models::Task task) {
      FakeOptions options;
      options.tasks = {task};
      backend_.store.Add(name, options);
    };
    add("embed", models::Task::kEmbedding);
    add("ner", models::Task::kTokenClassification);
    add("qa", models::Task::kQuestionAnswering);
    add("mask", models::Task::kFillMask);
  }
};

std::string Raw(const std::vector<int64_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t)};
}

TEST_F(RoutesTest, Health) {
  EXPECT_EQ(Get("/livez").body, R"({"live":true})");
  EXPECT_EQ(Get("/v2/health/live").body, R"({"live":true})");
  backend_.lifecycle.set_phase(server::Lifecycle::Phase::kServing);
  EXPECT_EQ(Get("/readyz").body, R"({"ready":true})");
  EXPECT_EQ(Get("/v2/health/ready").status, 200);
  backend_.lifecycle.set_phase(server::Lifecycle::Phase::kDraining);
  const RawResponse draining = Get("/v2/health/ready");
  EXPECT_EQ(draining.status, 503);
  EXPECT_EQ(draining.body, R"({"ready":false})");
  EXPECT_EQ(Get("/readyz").status, 503);
  EXPECT_EQ(Get("/livez").status, 200);
  EXPECT_EQ(Get("/health").status, 503);
  EXPECT_EQ(Get("/health").body, "");
  backend_.lifecycle.set_phase(server::Lifecycle::Phase::kServing);
  EXPECT_EQ(Get("/health").status, 200);
  EXPECT_EQ(Get("/health").body, "");
  backend_.LoseDevice();
  EXPECT_EQ(Get("/livez").status, 503);
  EXPECT_EQ(Get("/livez").body,
            R"({"live":false,"reason":"the devices of some models were lost"})");
  EXPECT_EQ(Get("/readyz").status, 503);
}

TEST_F(RoutesTest, OperationsAndConsole) {
  EXPECT_EQ(Body(Get("/version")),
            (json{{"name", "longview"}, {"version", "1.2.3"}, {"commit", "abc"}}));
  const RawResponse metrics = Get("/metrics");
  EXPECT_EQ(metrics.Header("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(metrics.body, HasSubstr("# HELP longview_build_info "));
  EXPECT_THAT(metrics.body, HasSubstr("method=\"/version\""));
  const RawResponse page = Get("/");
  EXPECT_EQ(page.Header("Content-Type"), "text/html; charset=utf-8");
  EXPECT_THAT(page.body, HasSubstr("<title>Longview"));
  EXPECT_EQ(page.Header("Access-Control-Allow-Origin"), "");
  const RawResponse docs = Get("/docs");
  EXPECT_EQ(docs.Header("Content-Type"), "text/html; charset=utf-8");
  EXPECT_THAT(docs.body, HasSubstr("openapi.json"));
  EXPECT_EQ(docs.body.find("://"), std::string::npos) << "nothing from elsewhere";
}

TEST_F(RoutesTest, OpenApiNamesEveryPath) {
  const json document = Body(Get("/openapi.json"));
  EXPECT_EQ(document["openapi"], "3.1.0");
  for (const char* path : {"/",
                           "/livez",
                           "/readyz",
                           "/version",
                           "/metrics",
                           "/openapi.json",
                           "/v2",
                           "/v2/health/live",
                           "/v2/health/ready",
                           "/v2/models/{m}",
                           "/v2/models/{m}/versions/{v}",
                           "/v2/models/{m}/ready",
                           "/v2/models/{m}/versions/{v}/ready",
                           "/v2/models/{m}/config",
                           "/v2/models/{m}/versions/{v}/config",
                           "/v2/models/{m}/stats",
                           "/v2/models/{m}/versions/{v}/stats",
                           "/v2/models/stats",
                           "/v2/models/{m}/infer",
                           "/v2/models/{m}/versions/{v}/infer",
                           "/v2/repository/index",
                           "/v2/repository/models/{m}/load",
                           "/v2/repository/models/{m}/unload",
                           "/v1/models",
                           "/v1/models/{id}",
                           "/v1/embeddings",
                           "/v1/completions",
                           "/v1/classify",
                           "/v1/classify-tokens",
                           "/v1/answer",
                           "/v1/fill-mask",
                           "/v1/estimate",
                           "/v1/detect",
                           "/v1/features",
                           "/v1/rerank",
                           "/embed",
                           "/predict",
                           "/rerank",
                           "/similarity",
                           "/v2/rerank",
                           "/score",
                           "/v1/embed",
                           "/v2/embed",
                           "/api/embed",
                           "/api/embeddings",
                           "/api/tags",
                           "/api/version",
                           "/health",
                           "/docs",
                           "/tokenize",
                           "/detokenize"}) {
    EXPECT_TRUE(document["paths"].contains(path)) << path;
  }
}

TEST_F(RoutesTest, UnknownPathsAndWrongMethods) {
  const RawResponse v1 = Get("/v1/nothing");
  EXPECT_EQ(v1.status, 404);
  EXPECT_EQ(Body(v1)["error"]["type"], "not_found_error");
  EXPECT_EQ(Body(v1)["error"]["code"], "NOT_FOUND");
  EXPECT_TRUE(Body(v1)["error"]["param"].is_null());
  EXPECT_TRUE(Body(Get("/v2/nothing"))["error"].is_string());
  for (const char* path : {"/v2/systemsharedmemory/status", "/v2/trace/setting", "/v2/logging"}) {
    EXPECT_EQ(Get(path).status, 404) << path;
  }
  for (const auto& [path, other] : {std::pair{"/embeddings", "there is /v1/embeddings"},
                                    std::pair{"/models/one", "there is /v1/models/one"},
                                    std::pair{"/v1/v1/embeddings", "there is /v1/embeddings"},
                                    std::pair{"/v1/tokenize", "there is /tokenize"}}) {
    const RawResponse near = Post(path, "{}");
    EXPECT_EQ(near.status, 404) << path;
    EXPECT_THAT(Message(near), HasSubstr(other)) << path;
  }
  EXPECT_EQ(Get("/v1//models//one").status, 200);
  EXPECT_EQ(Post("//v1/classify", kClassify).status, 200);
  const RawResponse wrong = Get("/v1/classify");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.Header("Allow"), "POST");
  const RawResponse post = Post("/livez", "");
  EXPECT_EQ(post.status, 405);
  EXPECT_EQ(post.Header("Allow"), "GET, HEAD");
  for (const char* path : {"/v1/chat/completions", "/v1/responses"}) {
    const RawResponse chat = Post(path, "{}");
    EXPECT_EQ(chat.status, 404);
    EXPECT_THAT(Message(chat), HasSubstr("/v1/completions"));
  }
}

TEST_F(RoutesTest, RequestIdsAreTheCallersOrNew) {
  EXPECT_EQ(Fetch(port_, "GET", "/livez", "", "x-request-id: mine\r\n").Header("x-request-id"),
            "mine");
  EXPECT_EQ(Fetch(port_, "GET", "/nope", "", "X-Request-ID: mine\r\n").Header("x-request-id"),
            "mine");
  const std::string first(Get("/livez").Header("x-request-id"));
  EXPECT_EQ(first.size(), 32u);
  EXPECT_NE(Get("/livez").Header("x-request-id"), first);
}

// ---- /v2 ----

TEST_F(RoutesTest, ServerAndModelMetadata) {
  const json server = Body(Get("/v2"));
  EXPECT_EQ(server["name"], "longview");
  EXPECT_EQ(server["extensions"].size(), 5u);
  for (const char* path : {"/v2/models/one", "/v2/models/one/versions/1"}) {
    const json model = Body(Get(path));
    EXPECT_EQ(model["name"], "one");
    EXPECT_EQ(model["versions"], json::array({"1"}));
    EXPECT_EQ(model["properties"]["task"], "text-classification");
    EXPECT_TRUE(model["inputs"][0]["shape"][0].is_number()) << model;
  }
  const json config = Body(Get("/v2/models/one/config"));
  EXPECT_EQ(config["max_batch_size"], 0);
  EXPECT_EQ(config["backend"], "longview");
  EXPECT_EQ(config["input"][0]["optional"], true);
  EXPECT_EQ(Get("/v2/models/two").status, 404);
  EXPECT_EQ(Get("/v2/models/one/versions/2").status, 404);
  EXPECT_EQ(Get("/v2/models/two/config").status, 404);
}

TEST_F(RoutesTest, ModelReadiness) {
  backend_.store.AddUnloaded("cold", server::ModelState::kUnavailable, "not loaded");
  EXPECT_EQ(Body(Get("/v2/models/one/ready")), (json{{"name", "one"}, {"ready", true}}));
  const RawResponse cold = Get("/v2/models/cold/ready");
  EXPECT_EQ(cold.status, 503);
  EXPECT_EQ(Body(cold)["ready"], false);
  EXPECT_EQ(Get("/v2/models/nobody/ready").status, 404);
}

TEST_F(RoutesTest, Statistics) {
  Post("/v2/models/one/infer",
       R"({"inputs":[{"name":"text","datatype":"BYTES","shape":[1],"data":["abc"]}]})");
  const json one = Body(Get("/v2/models/one/stats"));
  ASSERT_EQ(one["model_stats"].size(), 1u) << one;
  EXPECT_EQ(one["model_stats"][0]["inference_count"], 1);
  EXPECT_TRUE(one["model_stats"][0]["inference_stats"]["success"]["ns"].is_number());
  EXPECT_EQ(Body(Get("/v2/models/stats"))["model_stats"].size(), 5u);
}

TEST_F(RoutesTest, Repository) {
  backend_.store.AddUnloaded("cold", server::ModelState::kUnavailable, "not loaded");
  EXPECT_EQ(Body(Post("/v2/repository/index", "")).size(), 6u);
  EXPECT_EQ(Body(Post("/v2/repository/index", R"({"ready": true})")).size(), 5u);
  EXPECT_EQ(Post("/v2/repository/index", R"({"reddy": true})").status, 400);
  EXPECT_EQ(Post("/v2/repository/models/cold/load", "").status, 200);
  EXPECT_EQ(Get("/v2/models/cold/ready").status, 200);
  EXPECT_EQ(
      Post("/v2/repository/models/cold/unload", R"({"parameters":{"unload_dependents":false}})")
          .status,
      200);
  EXPECT_EQ(Get("/v2/models/cold/ready").status, 503);
  EXPECT_EQ(Post("/v2/repository/models/nobody/load", "").status, 404);
  EXPECT_EQ(Post("/v2/repository/models/cold/load", R"({"parameters":{"config":"{}"}})").status,
            400);
  EXPECT_EQ(Post("/v2/repository/models/cold/load", R"({"parameters":{"config":[1]}})").status,
            400);
  EXPECT_EQ(Post("/v2/repository/models/cold/load", "[").status, 400);
}

TEST_F(RoutesTest, InferWithJsonTensors) {
  const RawResponse response = Post("/v2/models/one/infer", R"({"id":"42","inputs":[
      {"name":"input_ids","datatype":"INT64","shape":[2,3],"data":[[1,2,3],[4,5,6]]}]})");
  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(response.Header("Inference-Header-Content-Length"), "");
  EXPECT_THAT(std::string(response.Header("Server-Timing")), HasSubstr("queue;dur="));
  const json body = Body(response);
  EXPECT_EQ(body["model_name"], "one");
  EXPECT_EQ(body["model_version"], "1");
  EXPECT_EQ(body["id"], "42");
  EXPECT_TRUE(body["parameters"].contains("queue_us"));
  ASSERT_EQ(body["outputs"].size(), 3u);
  EXPECT_EQ(body["outputs"][0]["name"], "logits");
  EXPECT_EQ(body["outputs"][0]["shape"], (json{2, 3}));
  EXPECT_EQ(body["outputs"][2]["datatype"], "BYTES");
  const std::vector<float> expected = FakeLogits(std::vector<int32_t>{4, 5, 6}, 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(body["outputs"][0]["data"][3 + i].get<float>(), expected[i]);
  }
  const RawResponse flat = Post("/v2/models/one/versions/1/infer", R"({"inputs":[
      {"name":"input_ids","datatype":"INT32","shape":[2,3],"data":[1,2,3,4,5,6]}],
      "outputs":[{"name":"logits"}]})");
  EXPECT_EQ(Body(flat)["outputs"][0]["data"], body["outputs"][0]["data"]);
  EXPECT_FALSE(Body(flat).contains("id"));
  EXPECT_EQ(Body(flat)["outputs"].size(), 1u);
}

TEST_F(RoutesTest, InferWithBinaryTensors) {
  const std::string ids = Raw({1, 2, 3});
  const std::string header =
      R"({"inputs":[{"name":"input_ids","datatype":"INT64","shape":[1,3],)"
      R"("parameters":{"binary_data_size":24}}],)"
      R"("outputs":[{"name":"logits","parameters":{"binary_data":true}},{"name":"label"}]})";
  const std::string length =
      "Inference-Header-Content-Length: " + std::to_string(header.size()) + "\r\n";
  const RawResponse response = Post("/v2/models/one/infer", header + ids, length);
  ASSERT_EQ(response.status, 200) << response.body;
  const size_t json_size =
      std::stoul(std::string(response.Header("Inference-Header-Content-Length")));
  const json body = json::parse(response.body.substr(0, json_size));
  EXPECT_EQ(body["outputs"][0]["parameters"]["binary_data_size"], 12);
  EXPECT_FALSE(body["outputs"][0].contains("data"));
  EXPECT_TRUE(body["outputs"][1].contains("data"));
  const std::vector<float> expected = FakeLogits(std::vector<int32_t>{1, 2, 3}, 3);
  ASSERT_EQ(response.body.size(), json_size + 12);
  EXPECT_EQ(std::memcmp(response.body.data() + json_size, expected.data(), 12), 0);

  const std::string all =
      R"({"parameters":{"binary_data_output":true},"inputs":[{"name":"input_ids",)"
      R"("datatype":"INT64","shape":[1,3],"data":[1,2,3]}]})";
  const RawResponse binary = Post("/v2/models/one/infer", all);
  ASSERT_EQ(binary.status, 200) << binary.body;
  EXPECT_EQ(binary.Header("Content-Type"), "application/octet-stream");
  EXPECT_NE(binary.Header("Inference-Header-Content-Length"), "");
}

TEST_F(RoutesTest, InferRefusals) {
  struct Case {
    const char* body;
    const char* message;
  };
  const std::vector<Case> cases = {
      {"", "not valid JSON"},
      {"[]", "must be a JSON object"},
      {"{}", "inputs: none given"},
      {R"({"inputs":{}})", "inputs: expected an array"},
      {R"({"inputs":[5]})", "inputs[0]: expected an object, got 5"},
      {R"({"inputs":[{"datatype":"INT64","shape":[1],"data":[1]}]})", "inputs[0]: lacks name"},
      {R"({"inputs":[{"name":"input_ids","shape":[1],"data":[1]}]})", "inputs[0]: lacks datatype"},
      {R"({"inputs":[{"name":"input_ids","datatype":"INT64","data":[1]}]})", "inputs[0].shape"},
      {R"({"inputs":[{"name":"input_ids","datatype":"INT64","shape":[1,2],"data":[1]}]})",
       "data has 1 elements, shape [1,2] asks for 2"},
      {R"({"inputs":[{"name":"input_ids","datatype":"INT64","shape":[-1,-1],"data":[1]}]})", ""},
      {R"({"inputs":[{"name":"input_ids","datatype":"INT64","shape":[9000000000000000000,9],"data":[1]}]})",
       "too many"},
      {R"({"inputs":[{"name":"input_ids","datatype":"INT64","shape":[1,1],"data":["a"]}]})",
       R"(input "input_ids": element 0 is "a")"},
      {R"({"inputs":[{"name":"input_ids","datatype":"INT64","shape":[1,2],"data":[[1],2]}]})",
       "expected an array, got 2"},
      {R"({"inputs":[{"name":"input_ids","datatype":"INT128","shape":[1,1],"data":[1]}]})",
       R"(unknown datatype "INT128")"},
      {R"({"inputs":[{"name":"input_ids","datatype":"FP16","shape":[1,1],"data":[1]}]})",
       "binary form only"},
      {R"({"inputs":[{"name":"input_ids","datatype":"INT64","shape":[1,1]}]})", "neither data"},
      {R"({"inputs":[{"name":"input_ids","datatype":"INT64","shape":[1,1],"data":[1],"parameters":{"binary_data_size":8}}]})",
       "both data"},
      {R"({"inputs":[{"name":"input_ids","datatype":"INT64","shape":[1,1],"parameters":{"binary_data_size":8}}]})",
       "the body has only 0 bytes left"},
      {R"({"inputs":[{"name":"input_ids","datatype":"INT64","shape":[1,1],"parameters":{"binary_data_size":-8}}]})",
       "expected an unsigned 64-bit integer"},
      {R"({"inputs":[{"name":"ids","datatype":"INT64","shape":[1,1],"data":[1]}]})", "ids"},
      {R"({"inputs":[{"name":"text","datatype":"BYTES","shape":[1],"data":[1]}]})",
       "expected a string, got 1"},
      {R"({"id":7,"inputs":[{"name":"text","datatype":"BYTES","shape":[1],"data":["a"]}]})",
       "id: expected a string, got 7"},
      {R"({"parameters":{"a":[1]},"inputs":[{"name":"text","datatype":"BYTES","shape":[1],"data":["a"]}]})",
       "lists are JSON in a string"},
      {R"({"outputs":[{"name":"wisdom"}],"inputs":[{"name":"text","datatype":"BYTES","shape":[1],"data":["a"]}]})",
       "wisdom"},
  };
  for (const Case& c : cases) {
    const RawResponse response = Post("/v2/models/one/infer", c.body);
    EXPECT_EQ(response.status, 400) << c.body << "\n" << response.body;
    EXPECT_THAT(Message(response), HasSubstr(c.message)) << c.body;
    EXPECT_TRUE(Body(response)["error"].is_string()) << c.body;
  }
  EXPECT_EQ(Post("/v2/models/one/infer", "{}", "Inference-Header-Content-Length: 3\r\n").status,
            400);
  EXPECT_EQ(Post("/v2/models/one/infer", "{}", "Inference-Header-Content-Length: x\r\n").status,
            400);
  const char* good = R"({"inputs":[{"name":"text","datatype":"BYTES","shape":[1],"data":["a"]}]})";
  EXPECT_EQ(Post("/v2/models/nobody/infer", good).status, 404);
  EXPECT_EQ(Post("/v2/models/one/versions/9/infer", good).status, 404);
  EXPECT_EQ(Post("/v2/models/one/infer", good).status, 200);
}

// ---- typed calls ----

TEST_F(RoutesTest, ClassifyInEveryForm) {
  const json expected = Body(Post("/v1/classify", kClassify));
  EXPECT_EQ(expected["model"], "one");
  EXPECT_EQ(expected["labels"].size(), 3u);
  EXPECT_EQ(expected["logits"], json::array());
  EXPECT_EQ(expected["usage"]["input_tokens"], 6);
  EXPECT_EQ(expected["usage"]["truncated_tokens"], 0);
  EXPECT_TRUE(expected["timing"]["queue_seconds"].is_number());

  const auto same = [&](const RawResponse& response) {
    EXPECT_EQ(response.status, 200) << response.body;
    EXPECT_EQ(Body(response)["labels"], expected["labels"]);
  };
  same(Post("/v1/classify", kClassify, "Content-Type: application/x-www-form-urlencoded\r\n"));
  same(Post("/v1/classify?model=one", "a page", "Content-Type: text/plain; charset=utf-8\r\n"));
  same(Post("/v1/classify",
            "--b\r\nContent-Disposition: form-data; name=\"text\"; filename=\"x.txt\"\r\n"
            "Content-Type: text/plain\r\n\r\na page\r\n--b\r\n"
            "Content-Disposition: form-data; name=\"model\"\r\n\r\none\r\n--b--\r\n",
            "Content-Type: multipart/form-data; boundary=b\r\n"));
  const json top = Body(Post("/v1/classify?model=one&top_k=1&return_logits=true", "a page",
                             "Content-Type: text/plain\r\n"));
  EXPECT_EQ(top["labels"].size(), 1u);
  EXPECT_EQ(top["logits"].size(), 3u);
}

TEST_F(RoutesTest, OtherTypedCalls) {
  EXPECT_TRUE(
      Body(Post("/v1/classify-tokens", R"({"model":"ner","text":"a b"})"))["entities"].is_array());
  const RawResponse answer =
      Post("/v1/answer", R"({"model":"qa","text":"Berlin is a city","question":"what is Berlin"})");
  EXPECT_EQ(Body(answer)["answers"].size(), 1u) << answer.body;
  const RawResponse query = Post("/v1/answer?model=qa&question=what+is+it", "a long document",
                                 "Content-Type: text/plain\r\n");
  EXPECT_EQ(query.status, 200) << query.body;
  EXPECT_EQ(Post("/v1/fill-mask", R"({"model":"mask","text":"a <mask> b"})").status, 200);
  const json estimate = Body(Post("/v1/estimate", R"({"model":"one","num_tokens":1000})"));
  EXPECT_GT(estimate["seconds"].get<double>(), 0);
  EXPECT_EQ(estimate["fits"], true);
  EXPECT_EQ(estimate["usage"]["input_tokens"], 1000);
}

TEST_F(RoutesTest, EstimateOfAPicture) {
  FakeOptions sees;
  sees.tasks = {models::Task::kImageClassification};
  sees.max_tokens = 5000;
  backend_.store.Add("sees", sees);
  const json estimate = Body(Post("/v1/estimate", R"({"model":"sees","width":60,"height":50})"));
  EXPECT_EQ(estimate["workspace_bytes"], 1024 * 3000);
  EXPECT_EQ(estimate["usage"]["width"], 60);
  EXPECT_EQ(estimate["usage"]["height"], 50);
  const RawResponse over = Post("/v1/estimate", R"({"model":"sees","width":71,"height":71})");
  EXPECT_EQ(over.status, 400);
  EXPECT_EQ(Body(over)["error"]["param"], "width");
  const RawResponse half = Post("/v1/estimate", R"({"model":"sees","width":71})");
  EXPECT_EQ(half.status, 400);
  EXPECT_EQ(Body(half)["error"]["param"], "height");
}

TEST_F(RoutesTest, TypedRefusals) {
  struct Case {
    const char* path;
    const char* body;
    const char* headers;
    int status;
    const char* param;
  };
  const std::vector<Case> cases = {
      {"/v1/classify", "{", "", 400, nullptr},
      {"/v1/classify", R"({"model":"one","txt":"a"})", "", 400, "txt"},
      {"/v1/classify", R"({"model":"one","text":5})", "", 400, "text"},
      {"/v1/classify", R"({"model":"one","model":"two","text":"a"})", "", 400, nullptr},
      {"/v1/classify", R"({"model":"one"})", "", 400, nullptr},
      {"/v1/classify", R"({"model":"nobody","text":"a"})", "", 404, nullptr},
      {"/v1/classify", R"({"model":"one","version":"3","text":"a"})", "", 404, nullptr},
      {"/v1/classify", R"({"model":"embed","text":"a"})", "", 400, nullptr},
      {"/v1/answer", R"({"model":"one","text":"a","question":"b"})", "", 400, nullptr},
      {"/v1/classify?model=one&topk=1", "a", "Content-Type: text/plain\r\n", 400, "topk"},
      {"/v1/classify?model=one&model=two", "a", "Content-Type: text/plain\r\n", 400, "model"},
      {"/v1/classify?model=%zz", "a", "Content-Type: text/plain\r\n", 400, "query"},
      {"/v1/classify?model=one", "a", "Content-Type: text/plain; charset=latin1\r\n", 415, nullptr},
      {"/v1/classify", "a", "Content-Type: multipart/mixed; boundary=b\r\n", 415, nullptr},
      {"/v1/classify", "a", "Content-Type: multipart/form-data\r\n", 400, nullptr},
      {"/v1/classify", R"({"model":"one","image":"aGk="})", "", 400, nullptr},
      {"/v1/classify", R"({"model":"one","image":"???"})", "", 400, "image"},
      {"/v1/answer?model=qa", "\x89PNG", "Content-Type: image/png\r\n", 400, "image"},
      {"/v1/detect?model=one", "\x89PNG", "Content-Type: image/png\r\n", 400, nullptr},
      {"/v1/detect?model=nobody", "\x89PNG", "Content-Type: image/png\r\n", 404, nullptr},
      {"/v1/detect?model=one&masks=perhaps", "\x89PNG", "Content-Type: image/png\r\n", 400,
       "masks"},
      {"/v1/features", R"({"model":"one","image":"aGk="})", "", 400, nullptr},
      {"/v1/completions", R"({"model":"one","prompt":"Once"})", "", 400, nullptr},
      {"/v1/completions", R"({"model":"one","prompt":"Once","temprature":1})", "", 400,
       "temprature"},
      {"/v1/completions", R"({"model":"one"})", "", 400, "prompt"},
      {"/v1/completions", R"({"model":"nobody","prompt":"Once"})", "", 404, nullptr},
  };
  for (const Case& c : cases) {
    const RawResponse response = Post(c.path, c.body, c.headers);
    EXPECT_EQ(response.status, c.status) << c.path << " " << c.body << "\n" << response.body;
    const json body = Body(response);
    ASSERT_TRUE(body["error"].is_object()) << response.body;
    if (c.param) {
      EXPECT_EQ(body["error"]["param"], c.param) << response.body;
    }
    if (body["error"]["code"] == "UNIMPLEMENTED") {
      EXPECT_EQ(response.Header("x-should-retry"), "false");
    }
  }
}

// ---- OpenAI ----

TEST_F(RoutesTest, ModelList) {
  const json list = Body(Get("/v1/models"));
  EXPECT_EQ(list["object"], "list");
  ASSERT_EQ(list["data"].size(), 5u);
  EXPECT_EQ(list["data"][0]["id"], "embed");
  EXPECT_EQ(list["data"][0]["object"], "model");
  EXPECT_EQ(list["data"][0]["owned_by"], "longview");
  EXPECT_TRUE(list["data"][0]["created"].is_number_integer());
  EXPECT_EQ(list["data"][0]["state"], "READY");
  EXPECT_EQ(list["data"][0]["task"], "embedding");
  EXPECT_EQ(Body(Get("/v1/models/one"))["id"], "one");
  EXPECT_EQ(Get("/v1/models/nobody").status, 404);
}

TEST_F(RoutesTest, Embeddings) {
  const json one = Body(Post("/v1/embeddings", R"({"model":"embed","input":"abc"})"));
  EXPECT_EQ(one["object"], "list");
  EXPECT_EQ(one["model"], "embed");
  ASSERT_EQ(one["data"].size(), 1u);
  EXPECT_EQ(one["data"][0]["object"], "embedding");
  EXPECT_EQ(one["data"][0]["embedding"].size(), 4u);
  EXPECT_EQ(one["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(one["usage"]["total_tokens"], 3);

  const json many = Body(Post("/v1/embeddings",
                              R"({"model":"embed","input":["x","abc"],"encoding_format":"base64",)"
                              R"("dimensions":4,"user":"me","truncate":true})"));
  ASSERT_EQ(many["data"].size(), 2u) << many;
  EXPECT_EQ(many["data"][1]["index"], 1);
  std::string bytes;
  ASSERT_TRUE(absl::Base64Unescape(many["data"][1]["embedding"].get<std::string>(), &bytes));
  ASSERT_EQ(bytes.size(), 16u);
  float first = 0;
  std::memcpy(&first, bytes.data(), sizeof(first));
  EXPECT_EQ(first, one["data"][0]["embedding"][0].get<float>());

  const json ids = Body(Post("/v1/embeddings", R"({"model":"embed","input":[97,98,99]})"));
  EXPECT_EQ(ids["data"][0]["embedding"], one["data"][0]["embedding"]);
  const json lists = Body(Post("/v1/embeddings", R"({"model":"embed","input":[[1],[97,98,99]]})"));
  EXPECT_EQ(lists["data"][1]["embedding"], one["data"][0]["embedding"]);
  EXPECT_EQ(lists["usage"]["prompt_tokens"], 4);
}

TEST_F(RoutesTest, EmbeddingRefusals) {
  struct Case {
    const char* body;
    int status;
    const char* param;
  };
  const std::vector<Case> cases = {
      {R"({"model":"embed"})", 400, "input"},
      {R"({"model":"embed","input":[]})", 400, "input"},
      {R"({"model":"embed","input":7})", 400, "input"},
      {R"({"model":"embed","input":["a",1]})", 400, "input[1]"},
      {R"({"model":"embed","input":[1,"a"]})", 400, "input"},
      {R"({"model":"embed","input":[[1],[]]})", 400, "input[1]"},
      {R"({"model":"embed","input":"a","encoding_format":"hex"})", 400, "encoding_format"},
      {R"({"model":"embed","input":"a","dimensions":5})", 400, "dimensions"},
      {R"({"model":"embed","input":"a","dimension":4})", 400, "dimension"},
      {R"({"model":"embed","input":"a","prompt":7})", 400, "prompt"},
      {R"({"model":"embed","input":["a"],"chunks":[[0,1]]})", 400, "chunks"},
      {R"({"model":"embed","input":"a","chunks":[[0,1,2]]})", 400, "chunks[0]"},
      {R"({"model":"embed","input":"a","chunks":[]})", 400, "chunks"},
      {R"({"model":"embed","input":"a","chunk_tokens":"many"})", 400, "chunk_tokens"},
      {R"({"model":"embed","input":"a","normalize":"yes"})", 400, "normalize"},
      {R"({"model":"nobody","input":"a"})", 404, nullptr},
  };
  for (const Case& c : cases) {
    const RawResponse response = Post("/v1/embeddings", c.body);
    EXPECT_EQ(response.status, c.status) << c.body << response.body;
    if (c.param) {
      EXPECT_EQ(Body(response)["error"]["param"], c.param) << response.body;
    }
  }
  const std::string name(1000, 'x');
  EXPECT_EQ(
      Post("/v1/embeddings", R"({"model":"embed","input":"a","pooling":")" + name + R"("})").status,
      400);
  EXPECT_THAT(Message(Post("/v1/embeddings", R"({"model":")" + name + R"(","input":"a"})")),
              HasSubstr("of 1000 bytes"));
  const RawResponse bad = Post("/v1/embeddings", R"({"model":"embed","input":["a","!prepare"]})");
  EXPECT_EQ(bad.status, 400);
  EXPECT_THAT(Message(bad), HasSubstr("input[1]"));
  const RawResponse second = Post(
      "/v1/embeddings", json{{"model", "embed"}, {"input", {"a", std::string(5000, 'x')}}}.dump());
  EXPECT_THAT(Message(second), ::testing::StartsWith("input[1]: 5000 tokens")) << second.body;
  EXPECT_EQ(Body(second)["error"]["param"], "input");
}

TEST_F(RoutesTest, AnUnknownModelIsTheSameFaultEverywhere) {
  const std::vector<std::pair<const char*, const char*>> calls = {
      {"/v1/classify", R"({"model":"nobody","text":"a"})"},
      {"/v1/embeddings", R"({"model":"nobody","input":["a","b"]})"},
      {"/v1/completions", R"({"model":"nobody","prompt":"a"})"},
      {"/v1/rerank", R"({"model":"nobody","query":"a","documents":["b"]})"},
      {"/tokenize", R"({"model":"nobody","text":"a"})"}};
  for (const auto& [path, body] : calls) {
    const RawResponse response = Post(path, body);
    EXPECT_EQ(response.status, 404) << path;
    const json error = Body(response)["error"];
    EXPECT_EQ(error["code"], "model_not_found") << path << response.body;
    EXPECT_EQ(error["type"], "invalid_request_error") << path;
    EXPECT_EQ(error["param"], "model") << path;
    EXPECT_THAT(Message(response), HasSubstr("model \"nobody\" not found")) << path;
  }
  EXPECT_EQ(Body(Get("/v1/models/nobody"))["error"]["code"], "model_not_found");
}

}  // namespace
}  // namespace longview::testing
