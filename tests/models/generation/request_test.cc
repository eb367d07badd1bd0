// Requests that Prepare refuses and cuts, and a model's description of itself.
#include <gtest/gtest.h>

#include "tests/models/generation/generator_driver.h"

namespace longview::models {
namespace {

::longview::testing::ToyOptions Small() { return {.max_tokens = 32, .prefill_alignment = 8}; }

void ExpectRefusal(const Model& model, const Request& request, const std::string& message) {
  const std::string refusal = Refusal(model, request);
  EXPECT_NE(refusal.find(message), std::string::npos) << refusal << " without " << message;
}

TEST(GeneratorRequest, LimitsNameTheirNumbers) {
  const ToyModel toy = MakeToyModel(Small());
  ExpectRefusal(*toy.model, TextRequest(std::string(33, 'x')),
                "text: 33 tokens and 1 to generate are more than the model's limit of 32");
  ExpectRefusal(*toy.model, TextRequest(std::string(20, 'x'), NewTokens(13)),
                "max_new_tokens: 13 after 20 tokens are more than the model's limit of 32; at most "
                "12 are left");
  EXPECT_EQ(Refusal(*toy.model, TextRequest(std::string(20, 'x'), NewTokens(12))), "");
  EXPECT_EQ(Refusal(*toy.model, TextRequest(std::string(32, 'x'), NewTokens(0))), "");
  ExpectRefusal(*toy.model, TextRequest(""), "text: empty");
  ExpectRefusal(*toy.model, IdsRequest({}), "token_ids: empty");
  ExpectRefusal(*toy.model, TextRequest("a\xff"), "text: byte 0xff is not text");
  ExpectRefusal(*toy.model, IdsRequest({5, 257}),
                "token_ids: 257 at position 1 is not in [0, 257)");
  ExpectRefusal(*toy.model, IdsRequest({-1}), "token_ids: -1 at position 0");
}

TEST(GeneratorRequest, TruncationLeavesRoomForWhatIsAsked) {
  const ToyModel toy = MakeToyModel(Small());
  Request request = TextRequest(std::string(40, 'x'), NewTokens(5));
  request.truncate = true;
  const auto item = toy.model->Prepare(request);
  ASSERT_TRUE(item.ok()) << item.status();
  EXPECT_EQ((*item)->usage().input_tokens, 27);
  EXPECT_EQ((*item)->usage().truncated_tokens, 13);
  const Answer answer = Generate(*toy.model, request);
  EXPECT_EQ(answer.usage.truncated_tokens, 13);
}

TEST(GeneratorRequest, NewTokensThatNobodyAskedForAreCutToTheRoom) {
  const ToyModel toy = MakeToyModel(Small());
  GenerationOptions options;
  options.ignore_eos = true;
  const Answer answer = Generate(*toy.model, TextRequest(std::string(28, 'x'), options));
  EXPECT_EQ(answer.usage.output_tokens, 4);
}

TEST(GeneratorRequest, PaddingMayStandAtEitherEnd) {
  const ToyModel toy = MakeToyModel(Small());
  Request request = IdsRequest({1, 2, 3, 4});
  request.tokens->attention_mask = {0, 1, 1, 0};
  EXPECT_EQ((*toy.model->Prepare(request))->usage().input_tokens, 2);
  request.tokens->attention_mask = {1, 0, 1, 1};
  ExpectRefusal(*toy.model, request, "attention_mask: a hole");
  request.tokens->attention_mask = {1};
  ExpectRefusal(*toy.model, request, "attention_mask: 1 values for 4 token ids");
  request.tokens->attention_mask = {0, 0, 0, 0};
  ExpectRefusal(*toy.model, request, "token_ids: empty");
}

TEST(GeneratorRequest, FieldsOfOtherTasksAreRefused) {
  const ToyModel toy = MakeToyModel(Small());
  const auto refused = [&](auto set, const std::string& field) {
    Request request = TextRequest("x");
    set(request);
    ExpectRefusal(*toy.model, request, field + ": ");
  };
  refused([](Request& r) { r.text_pair = "y"; }, "text_pair");
  refused([](Request& r) { r.question = "y"; }, "question");
  refused([](Request& r) { r.choices = {"y"}; }, "choices");
  refused([](Request& r) { r.global_positions.emplace(); }, "global_positions");
  refused([](Request& r) { r.global_tokens = {"y"}; }, "global_tokens");
  refused([](Request& r) { r.pooling = "mean"; }, "pooling");
  refused([](Request& r) { r.normalize = true; }, "normalize");
  refused([](Request& r) { r.aggregation = "simple"; }, "aggregation");
  refused([](Request& r) { r.tokens.emplace(); }, "text");
  refused([](Request& r) { r.text.reset(); }, "text");
  refused([](Request& r) { r.tensors = {"logits"}; }, "outputs");
  refused([](Request& r) { r.tensors = {"embedding"}; }, "outputs");
  refused([](Request& r) { r.extend_document = true; }, "document");
  Request other = TextRequest("x");
  other.task = Task::kEmbedding;
  EXPECT_EQ(toy.model->Prepare(other).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(GeneratorRequest, BadOptionsReachTheClient) {
  const ToyModel toy = MakeToyModel(Small());
  GenerationOptions options;
  options.top_p = 2;
  ExpectRefusal(*toy.model, TextRequest("x", options), "top_p: 2 is not in (0, 1]");
  options = {};
  options.others["bad_words_ids"] = "[[257]]";
  ExpectRefusal(*toy.model, TextRequest("x", options), "bad_words_ids");
}

TEST(GeneratorRequest, ModelsWithoutTokenizerTakeIdsOnly) {
  const ToyModel toy = MakeToyModel(Small(), {}, false);
  ExpectRefusal(*toy.model, TextRequest("x"), "text: the model has no tokenizer");
  GenerationOptions options = NewTokens(3);
  options.logprobs = 1;
  const Answer answer = Generate(*toy.model, IdsRequest({1, 2}, options));
  EXPECT_EQ(answer.sequences[0].text, "");
  EXPECT_EQ(answer.sequences[0].token_ids, ::longview::testing::ToyDecoder::Greedy({1, 2}, 3));
  options.stop = {"x"};
  ExpectRefusal(*toy.model, IdsRequest({1}, options), "stop: the model has no tokenizer");
  EXPECT_FALSE(toy.model->info().has_tokenizer);
}

TEST(GeneratorModel, SaysWhatItIs) {
  GeneratorTraits traits;
  traits.defaults.num_return_sequences = 2;
  traits.defaults.do_sample = true;
  const ToyModel toy = MakeToyModel(Small(), traits);
  const ModelInfo& info = toy.model->info();
  EXPECT_EQ(info.task, Task::kTextGeneration);
  EXPECT_EQ(info.max_tokens, 32);
  EXPECT_EQ(info.prefill_alignment, 8);
  EXPECT_EQ(info.sequences, 2);
  EXPECT_EQ(info.pad_token, ::longview::testing::kToyEnd);
  EXPECT_EQ(Generate(*toy.model, TextRequest("x", NewTokens(2))).sequences.size(), 2u);
}

TEST(GeneratorModel, BadDefaultsDoNotLoad) {
  GeneratorParts parts;
  parts.decoder = std::make_unique<::longview::testing::ToyDecoder>();
  parts.traits.defaults.top_k = -4;
  const absl::Status status = MakeGeneratorModel(std::move(parts)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("top_k: -4"), std::string::npos) << status;
}

TEST(GeneratorModel, AnswersNothingInOnePass) {
  const ToyModel toy = MakeToyModel(Small());
  const auto item = toy.model->Prepare(TextRequest("x"));
  const Item* items[] = {item->get()};
  const std::unique_ptr<models::Run> run = toy.model->Begin(items);
  EXPECT_FALSE(run->Advance());
  EXPECT_EQ(run->Take(0).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(GeneratorModel, EstimatesWithoutTokens) {
  const ToyModel toy = MakeToyModel();
  const auto estimate = toy.model->EstimateTokens(100);
  ASSERT_TRUE(estimate.ok());
  const auto item = toy.model->Prepare(IdsRequest(std::vector<int32_t>(100, 5)));
  EXPECT_EQ(estimate->state_bytes, (*item)->cost().state_bytes);
  EXPECT_EQ(estimate->seconds, (*item)->cost().seconds);
  const auto full = toy.model->EstimateTokens(1000);
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_GT(full->seconds, toy.model->EstimateTokens(999)->seconds);
  EXPECT_NE(toy.model->EstimateTokens(2000).status().message().find("2000 is not in [1, 1000]"),
            std::string::npos);
}

}  // namespace
}  // namespace longview::models
