// The outputs of every text task, by the table of the protocol.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/server/api/infer_helpers.h"

namespace longview::testing {
namespace {

using models::Task;
using nlohmann::json;

FakeOptions ForTask(Task task) {
  FakeOptions options;
  options.tasks = {task, Task::kEmbedding};
  return options;
}

std::vector<int64_t> Shape(const inference::ModelInferResponse& response, int i) {
  const auto& shape = response.outputs(i).shape();
  return {shape.begin(), shape.end()};
}

std::string Text(const std::string& text) {
  return R"(inputs { name: "text" datatype: "BYTES" shape: [1] contents { bytes_contents: ")" +
         text + R"(" } } )";
}

TEST(InferTasks, MultiLabelTakesTheSigmoid) {
  Backend backend;
  FakeOptions options;
  options.problem_type = models::ProblemType::kMultiLabel;
  backend.store.Add("m", options);
  const auto response =
      Infer(backend, R"(model_name: "m" outputs { name: "probabilities" })" + Text("abc"));
  ASSERT_TRUE(response.ok()) << response.status();
  const std::vector<float> logits = FakeLogits("abc", 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(response->outputs(0).contents().fp32_contents(i), 1 / (1 + std::exp(-logits[i])),
                1e-6);
  }
}

TEST(InferTasks, RegressionHasLogitsOnly) {
  Backend backend;
  FakeOptions options;
  options.problem_type = models::ProblemType::kRegression;
  backend.store.Add("m", options);
  const auto response = Infer(backend, R"(model_name: "m")" + Text("abc"));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(OutputNames(*response), std::vector<std::string>{"logits"});
  EXPECT_FALSE(
      Infer(backend, R"(model_name: "m" outputs { name: "probabilities" })" + Text("a")).ok());
}

TEST(InferTasks, TokenClassification) {
  Backend backend;
  backend.store.Add("m", ForTask(Task::kTokenClassification));
  const auto response =
      Infer(backend,
            R"(model_name: "m" parameters { key: "aggregation" value { string_param: "max" } })" +
                Text("An Old tree"));
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(OutputNames(*response), (std::vector<std::string>{"logits", "entities"}));
  EXPECT_EQ(Shape(*response, 0), (std::vector<int64_t>{1, 11, 3}));
  EXPECT_EQ(Shape(*response, 1), std::vector<int64_t>{1});
  const json entities = json::parse(response->outputs(1).contents().bytes_contents(0));
  ASSERT_EQ(entities.size(), 2u);
  EXPECT_EQ(entities[1]["text"], "Old");
  EXPECT_EQ(entities[1]["start"], 3);
  EXPECT_EQ(entities[1]["end"], 6);
  EXPECT_EQ(entities[1]["score"], 0.5);
  EXPECT_TRUE(entities[1].contains("label"));
  EXPECT_EQ(backend.last_request().aggregation, "max");
}

TEST(InferTasks, EntitiesNeedText) {
  Backend backend;
  backend.store.Add("m", ForTask(Task::kTokenClassification));
  const std::string ids = R"(model_name: "m" inputs { name: "input_ids" datatype: "INT64"
      shape: [1,2] contents { int64_contents: [65, 66] } })";
  const auto response = Infer(backend, ids);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(OutputNames(*response), std::vector<std::string>{"logits"});
  const auto named = Infer(backend, ids + R"(outputs { name: "entities" })");
  EXPECT_EQ(named.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(InferTasks, QuestionAnswering) {
  Backend backend;
  backend.store.Add("m", ForTask(Task::kQuestionAnswering));
  const std::string question = R"(inputs { name: "question" datatype: "BYTES" shape: [1,1]
      contents { bytes_contents: "who?" } })";
  const auto response = Infer(backend, R"(model_name: "m")" + question + Text("Ada wrote it"));
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(OutputNames(*response),
            (std::vector<std::string>{"answer", "start_logits", "end_logits"}));
  const json answer = json::parse(response->outputs(0).contents().bytes_contents(0));
  EXPECT_EQ(answer["text"], "Ada");
  EXPECT_EQ(answer["start"], 0);
  EXPECT_EQ(answer["end"], 3);
  EXPECT_EQ(answer["score"], 8.0);
  EXPECT_EQ(answer["probability"], 0.5);
  EXPECT_EQ(Shape(*response, 1), (std::vector<int64_t>{1, 16}));
  EXPECT_EQ(Shape(*response, 2), (std::vector<int64_t>{1, 16}));
  EXPECT_EQ(backend.last_request().question, "who?");

  const auto without = Infer(backend, R"(model_name: "m")" + Text("Ada wrote it"));
  EXPECT_NE(std::string(without.status().message()).find("question"), std::string::npos);
}

TEST(InferTasks, MultipleChoice) {
  Backend backend;
  backend.store.Add("m", ForTask(Task::kMultipleChoice));
  const auto text = Infer(backend, R"(model_name: "m" inputs { name: "choices" datatype: "BYTES"
      shape: [4] contents { bytes_contents: ["a", "b", "c", "d"] } })" +
                                       Text("which"));
  ASSERT_TRUE(text.ok()) << text.status();
  ASSERT_EQ(OutputNames(*text), (std::vector<std::string>{"logits", "probabilities"}));
  EXPECT_EQ(Shape(*text, 0), (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(backend.last_request().choices.size(), 4u);

  const auto ids = Infer(backend, R"(model_name: "m" inputs { name: "input_ids" datatype: "INT64"
      shape: [1,2,3] contents { int64_contents: [1,2,3,4,5,6] } } inputs { name: "attention_mask"
      datatype: "INT64" shape: [1,2,3] contents { int64_contents: [1,1,1,1,1,0] } })");
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(Shape(*ids, 0), (std::vector<int64_t>{1, 2}));
  const models::Request last = backend.last_request();
  ASSERT_EQ(last.choice_tokens.size(), 2u);
  EXPECT_EQ(last.choice_tokens[1].ids, (std::vector<int32_t>{4, 5}));

  const auto two = Infer(backend, R"(model_name: "m" inputs { name: "input_ids" datatype: "INT64"
      shape: [2,1,1] contents { int64_contents: [1,2] } })");
  EXPECT_NE(std::string(two.status().message()).find("limit is 1"), std::string::npos)
      << two.status();
}

TEST(InferTasks, FillMask) {
  Backend backend;
  backend.store.Add("m", ForTask(Task::kFillMask));
  const auto response =
      Infer(backend, R"(model_name: "m" parameters { key: "top_k" value { string_param: "2" } })" +
                         Text("a _ b _"));
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(OutputNames(*response), std::vector<std::string>{"top"});
  const json top = json::parse(response->outputs(0).contents().bytes_contents(0));
  ASSERT_EQ(top.size(), 2u);
  ASSERT_EQ(top[0].size(), 2u);
  EXPECT_EQ(top[0][1]["token_id"], 'b');
  EXPECT_EQ(top[0][1]["token"], "b");
  EXPECT_EQ(top[0][1]["logprob"], -2.0);
  const auto logits = Infer(backend, R"(model_name: "m" outputs { name: "logits" })" + Text("a_"));
  ASSERT_TRUE(logits.ok()) << logits.status();
  EXPECT_EQ(Shape(*logits, 0), (std::vector<int64_t>{1, 2, 256}));
}

TEST(InferTasks, Embedding) {
  Backend backend;
  backend.store.Add("m", ForTask(Task::kEmbedding));
  const auto response = Infer(backend, R"(model_name: "m"
      parameters { key: "pooling" value { string_param: "cls" } }
      parameters { key: "normalize" value { bool_param: true } })" +
                                           Text("abc"));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(OutputNames(*response), std::vector<std::string>{"embedding"});
  EXPECT_EQ(backend.last_request().pooling, "cls");
  EXPECT_EQ(backend.last_request().normalize, true);

  const std::string none = R"(model_name: "m"
      parameters { key: "pooling" value { string_param: "none" } })" +
                           Text("abc");
  const auto hidden = Infer(backend, none);
  ASSERT_TRUE(hidden.ok()) << hidden.status();
  EXPECT_EQ(OutputNames(*hidden), std::vector<std::string>{"last_hidden_state"});
  const auto both = Infer(backend, none + R"(outputs { name: "embedding" })");
  EXPECT_NE(std::string(both.status().message()).find("last_hidden_state"), std::string::npos);
}

TEST(InferTasks, TokenIdsOnlyWithoutATokenizer) {
  Backend backend;
  FakeOptions options;
  options.has_tokenizer = false;
  backend.store.Add("m", options);
  const auto text = Infer(backend, R"(model_name: "m")" + Text("abc"));
  EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(InferTasks, DetectorsReadPictures) {
  Backend backend;
  backend.store.Add("m", ForTask(Task::kObjectDetection));
  const auto response = Infer(backend, R"(model_name: "m")" + Text("abc"));
  EXPECT_EQ(response.status().code(), absl::StatusCode::kInvalidArgument) << response.status();
  EXPECT_NE(std::string(response.status().message()).find("image"), std::string::npos);
}

}  // namespace
}  // namespace longview::testing
