// Generators by tensors: options as parameters, sequences as rows, scores of a prompt.
#include "tests/server/api/infer_helpers.h"

namespace longview::testing {
namespace {

constexpr char kTwo[] = R"(model_name: "gen"
    inputs { name: "text" datatype: "BYTES" shape: [2] contents { bytes_contents: ["ab", "cd"] } })";
constexpr char kOne[] = R"(model_name: "gen"
    inputs { name: "text" datatype: "BYTES" shape: [1] contents { bytes_contents: "abc" } })";

std::string Parameter(const std::string& name, const std::string& value) {
  return R"( parameters { key: ")" + name + R"(" value { )" + value + " } }";
}

class InferGeneration : public ::testing::Test {
 protected:
  InferGeneration() { backend.store.AddGenerator("gen", {}); }
  Backend backend;
};

TEST_F(InferGeneration, SequencesAreRows) {
  const auto response = Infer(backend, kTwo + Parameter("max_tokens", "int64_param: 5") +
                                           Parameter("num_return_sequences", "int64_param: 2"));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(OutputNames(*response), (std::vector<std::string>{"text", "token_ids", "num_tokens"}));
  const auto& texts = response->outputs(0).contents().bytes_contents();
  ASSERT_EQ(texts.size(), 4);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(texts[i], FakeContinuation(i < 2 ? "ab" : "cd", i % 2, 5));
  EXPECT_EQ(response->outputs(1).shape(0), 4);
  EXPECT_EQ(response->outputs(1).shape(1), 5);
  EXPECT_EQ(response->outputs(1).contents().int64_contents(5), texts[1][0]);
  EXPECT_EQ(response->outputs(2).contents().int64_contents(3), 5);
}

TEST_F(InferGeneration, ShortRowsAreFilledWithPad) {
  // A stop string ends the first row early.
  const std::string stop = FakeContinuation("ab", 0, 3).substr(2);
  const auto response = Infer(backend, kTwo + Parameter("max_tokens", "int64_param: 60") +
                                           Parameter("stop", "string_param: '" + stop + "'"));
  ASSERT_TRUE(response.ok()) << response.status();
  const auto& counts = response->outputs(2).contents().int64_contents();
  const int64_t width = response->outputs(1).shape(1);
  EXPECT_EQ(width, std::max(counts[0], counts[1]));
  const auto& ids = response->outputs(1).contents().int64_contents();
  for (int row = 0; row < 2; ++row) {
    for (int64_t i = 0; i < width; ++i) {
      EXPECT_EQ(ids[static_cast<int>(row * width + i)] != 0, i < counts[row]);
    }
  }
}

TEST_F(InferGeneration, ParametersOfEveryKind) {
  const auto response = Infer(
      backend,
      kOne + Parameter("max_new_tokens", "string_param: '3'") +
          Parameter("temperature", "double_param: 0.123456789") +
          Parameter("do_sample", "string_param: 'True'") + Parameter("top_k", "uint64_param: 7") +
          Parameter("stop", R"(string_param: "[\"zz\", \"yy\"]")") +
          Parameter("bad_words_ids", "string_param: '[[5,7]]'") +
          Parameter("seed", "double_param: 12") + Parameter("truncate", "bool_param: true"));
  ASSERT_TRUE(response.ok()) << response.status();
  const models::Request request = backend.last_request();
  const models::GenerationOptions& options = *request.generation;
  EXPECT_EQ(options.defaults, models::GenerationDefaults::kHuggingFace);
  EXPECT_EQ(options.max_new_tokens, 3);
  EXPECT_EQ(options.temperature, 0.123456789);
  EXPECT_EQ(options.do_sample, true);
  EXPECT_EQ(options.top_k, 7);
  EXPECT_EQ(options.stop, (std::vector<std::string>{"zz", "yy"}));
  EXPECT_EQ(options.others.at("bad_words_ids"), "[[5,7]]");
  EXPECT_EQ(options.seed, 12u);
  EXPECT_EQ(request.truncate, true);
}

TEST_F(InferGeneration, BadParametersAreNamed) {
  const std::pair<std::string, std::string> cases[] = {
      {Parameter("temperature", "double_param: nan"), "temperature"},
      {Parameter("temperature", "string_param: 'nan'"), "temperature"},
      {Parameter("max_tokens", "int64_param: 1") + Parameter("max_new_tokens", "int64_param: 1"),
       "max_"},
      {Parameter("no_such_option", "int64_param: 1"), "no_such_option"},
      {Parameter("top_k", "string_param: 'many'"), "top_k"},
      {Parameter("max_tokens", "int64_param: 1000000"), "1000000"},
      {Parameter("sequence_id", "int64_param: 1"), "sequence_id"},
  };
  for (const auto& [parameters, word] : cases) {
    const absl::Status status = Infer(backend, kOne + parameters).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << parameters;
    EXPECT_NE(std::string(status.message()).find(word), std::string::npos) << status;
  }
}

TEST_F(InferGeneration, MaxTokensZeroScoresThePrompt) {
  const std::string zero = Parameter("max_tokens", "int64_param: 0");
  const auto response = Infer(backend, kOne + zero);
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(OutputNames(*response), std::vector<std::string>{"token_logprobs"});
  EXPECT_EQ(response->outputs(0).shape(0), 1);
  EXPECT_EQ(response->outputs(0).shape(1), 3);
  EXPECT_EQ(Floats(response->outputs(0).contents().fp32_contents()),
            (std::vector<float>{0, -1.5f, -1.5f}));
  EXPECT_FALSE(Infer(backend, kTwo + zero).ok());  // One row per token needs n = 1.
  EXPECT_FALSE(Infer(backend, kOne + zero + R"( outputs { name: "text" })").ok());
  EXPECT_FALSE(Infer(backend, std::string(kOne) + R"( outputs { name: "token_logprobs" })").ok());
}

TEST_F(InferGeneration, RowsOfIdsAreCutByTheMask) {
  const auto response = Infer(backend, R"(model_name: "gen"
      inputs { name: "input_ids" datatype: "INT64" shape: [1, 4]
               contents { int64_contents: [97, 98, 0, 0] } }
      inputs { name: "attention_mask" datatype: "INT64" shape: [1, 4]
               contents { int64_contents: [1, 1, 0, 0] } })" +
                                           Parameter("max_tokens", "int64_param: 4"));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->outputs(0).contents().bytes_contents(0), FakeContinuation("ab", 0, 4));
}

TEST_F(InferGeneration, TheFirstFailingItemIsNamed) {
  const auto response = Infer(backend, R"(model_name: "gen"
      inputs { name: "text" datatype: "BYTES" shape: [2]
               contents { bytes_contents: ["ab", "!prepare"] } })");
  EXPECT_NE(std::string(response.status().message()).find("item 1: "), std::string::npos);
}

}  // namespace
}  // namespace longview::testing
