// Mistakes of clients, and the edges of the specification.
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "tests/models/golden/golden_case.h"

namespace longview::models {
namespace {

TokenInput Ids(std::vector<int32_t> ids) {
  TokenInput tokens;
  tokens.ids = std::move(ids);
  return tokens;
}

Request Classify(TokenInput tokens) {
  return TokenRequest(Task::kTextClassification, std::move(tokens), {"logits"});
}

class PrepareTest : public ::testing::Test {
 protected:
  // The message must hold every part.
  void ExpectRefused(const Model& model, const Request& request,
                     const std::vector<std::string>& parts,
                     absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
    const auto item = model.Prepare(request);
    ASSERT_FALSE(item.ok()) << parts[0];
    EXPECT_EQ(item.status().code(), code) << item.status();
    for (const std::string& part : parts) {
      EXPECT_NE(item.status().message().find(part), std::string::npos)
          << "\"" << part << "\" is not in: " << item.status().message();
    }
  }

  const std::unique_ptr<Model> classifier_ = GoldenCase("classification").Load("fp32");
};

TEST_F(PrepareTest, RefusesWhatTheModelCannotRead) {
  const int limit = classifier_->info().max_tokens;
  ASSERT_EQ(limit, 1200);
  ExpectRefused(*classifier_, Classify(Ids({})), {"token_ids", "0 tokens"});
  ExpectRefused(*classifier_, Classify(Ids({5, 400})), {"400", "position 1", "[0, 400)"});
  ExpectRefused(*classifier_, Classify(Ids({-1})), {"-1", "position 0"});
  ExpectRefused(*classifier_, Classify(Ids(std::vector<int32_t>(1201, 7))),
                {"token_ids", "1201", "1200"});
  TokenInput left_padded = Ids({1, 7, 8});
  left_padded.attention_mask = {0, 1, 1};
  ExpectRefused(*classifier_, Classify(left_padded), {"attention_mask", "right"});
  TokenInput short_mask = Ids({5, 7, 8});
  short_mask.attention_mask = {1, 1};
  ExpectRefused(*classifier_, Classify(short_mask), {"attention_mask", "2 values", "3 token ids"});
  TokenInput types = Ids({5, 7});
  types.token_type_ids = {0, 1};
  ExpectRefused(*classifier_, Classify(types), {"token_type_ids", "1 at position 1", "[0, 1)"});
  Request globals = Classify(Ids({5, 7}));
  globals.global_positions = {2};
  ExpectRefused(*classifier_, globals, {"global_positions", "2", "[0, 2)"});
  Request text;
  text.text = "a text";
  ExpectRefused(*classifier_, text, {"text", "no tokenizer"});
  ExpectRefused(*classifier_, Request{}, {"text"});
}

TEST_F(PrepareTest, RefusesOptionsThatMeanNothing) {
  Request request = Classify(Ids({5, 7}));
  request.tensors = {"start_logits"};
  ExpectRefused(*classifier_, request, {"outputs", "start_logits"});
  request = Classify(Ids({5, 7}));
  request.pooling = "median";
  ExpectRefused(*classifier_, request, {"pooling", "median", "cls"});
  request.pooling = "pooler";
  ExpectRefused(*classifier_, request, {"pooling", "pooler"});
  request = Classify(Ids({5, 7}));
  request.question = "Who?";
  ExpectRefused(*classifier_, request, {"question"});
  request = Classify(Ids({5, 7}));
  request.aggregation = "median";
  ExpectRefused(*classifier_, request, {"aggregation", "median"});
  request = Classify(Ids({5, 7}));
  request.task = Task::kQuestionAnswering;
  ExpectRefused(*classifier_, request, {"question-answering"}, absl::StatusCode::kUnimplemented);
}

TEST_F(PrepareTest, AQuestionNeedsASeparatorOrGlobals) {
  const auto model = GoldenCase("question_answering").Load("fp32");
  Request request = TokenRequest(Task::kQuestionAnswering, Ids({0, 5, 6, 7}), {"start_logits"});
  ExpectRefused(*model, request, {"separator", "2"});
  request.tokens->global_mask = std::vector<uint8_t>{1, 0, 0, 0};
  EXPECT_TRUE(model->Prepare(request).ok());
}

TEST_F(PrepareTest, TruncatesOnlyWhenAsked) {
  std::vector<int32_t> ids(1300, 7);
  ids.front() = 0;
  ids.back() = 2;
  Request request = Classify(Ids(ids));
  EXPECT_FALSE(classifier_->Prepare(request).ok());
  request.truncate = true;
  const Answer cut = RunAlone(*classifier_, request);
  EXPECT_EQ(cut.usage.truncated_tokens, 100);
  EXPECT_EQ(cut.usage.input_tokens, 1200);
  ids.erase(ids.end() - 101, ids.end() - 1);
  EXPECT_EQ(RunAlone(*classifier_, Classify(Ids(ids))).tensors[0].data, cut.tensors[0].data);
}

TEST_F(PrepareTest, PairsOfIdsAreJoinedAndTheLongerGivesWay) {
  Request pair = Classify(Ids({0, 11, 12, 2}));
  pair.task = Task::kTextPairClassification;
  pair.tokens_pair = Ids({2, 21, 2});
  const Answer joined = RunAlone(*classifier_, Classify(Ids({0, 11, 12, 2, 2, 21, 2})));
  EXPECT_EQ(RunAlone(*classifier_, pair).tensors[0].data, joined.tensors[0].data);
  pair.tokens = Ids(std::vector<int32_t>(1000, 9));
  pair.tokens_pair = Ids(std::vector<int32_t>(300, 8));
  pair.truncate = true;
  const auto item = classifier_->Prepare(pair);
  ASSERT_TRUE(item.ok()) << item.status();
  EXPECT_EQ((*item)->usage().truncated_tokens, 100);
}

TEST_F(PrepareTest, TrailingPaddingHasNoInfluence) {
  const Answer alone = RunAlone(*classifier_, Classify(Ids({0, 8, 9, 10, 2})));
  TokenInput padded = Ids({0, 8, 9, 10, 2, 77, 78, 1});
  padded.attention_mask = {1, 1, 1, 1, 1, 0, 0, 0};
  padded.global_mask = std::vector<uint8_t>{1, 0, 0, 0, 0, 0, 1, 0};
  EXPECT_EQ(RunAlone(*classifier_, Classify(padded)).tensors[0].data, alone.tensors[0].data);
}

TEST_F(PrepareTest, AGlobalMaskReplacesTheDefault) {
  const std::vector<int32_t> ids = {0, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 2};
  Request by_default = Classify(Ids(ids));
  Request first = by_default, none = by_default;
  first.global_positions = std::vector<int32_t>{0};
  none.tokens->global_mask = std::vector<uint8_t>(ids.size(), 0);
  const Answer want = RunAlone(*classifier_, by_default);
  EXPECT_EQ(RunAlone(*classifier_, first).tensors[0].data, want.tensors[0].data);
  EXPECT_NE(RunAlone(*classifier_, none).tensors[0].data, want.tensors[0].data);
}

TEST_F(PrepareTest, TokensOfTextBecomeGlobalByName) {
  const auto model = GoldenCase("text_classification").Load("fp32");
  Request request;
  request.text = "Hello world! Hello again.";
  request.tensors = {"logits"};
  const Answer plain = RunAlone(*model, request);
  request.global_tokens = {"</s>"};
  EXPECT_NE(RunAlone(*model, request).tensors[0].data, plain.tensors[0].data);
  request.global_tokens = {"no such token"};
  ExpectRefused(*model, request, {"global_tokens", "no such token"});
}

TEST_F(PrepareTest, CostsGrowWithTheDocumentAndBytesAreThoseOfTheRun) {
  const auto brief = classifier_->EstimateTokens(10), full = classifier_->EstimateTokens(1200);
  ASSERT_TRUE(brief.ok() && full.ok());
  EXPECT_LT(brief->seconds, full->seconds);
  EXPECT_LT(brief->workspace_bytes, full->workspace_bytes);
  EXPECT_GT(brief->seconds, 0);
  EXPECT_FALSE(classifier_->EstimateTokens(0).ok());
  EXPECT_FALSE(classifier_->EstimateTokens(1201).ok());
  ASSERT_TRUE(classifier_->WarmUp().ok());
  const auto item = classifier_->Prepare(Classify(Ids(std::vector<int32_t>(1200, 7))));
  EXPECT_EQ((*item)->cost().workspace_bytes, full->workspace_bytes);
  EXPECT_EQ((*item)->cost().seconds, classifier_->EstimateTokens(1200)->seconds);
}

}  // namespace
}  // namespace longview::models
