// Generating behind an encoder, over the toy decoder: documents in pieces, outputs that begin with
// the start token, shared documents, what requests may hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/models/generation/generator_driver.h"

namespace longview::models {
namespace {

using ::longview::testing::kToyEnd;
using ::longview::testing::ToyDecoder;
using ::longview::testing::ToyLogits;
using ::longview::testing::ToyOptions;

constexpr int32_t kStart = 7;

ToyModel MakeSourced() {
  ToyOptions options;
  options.max_tokens = 41;
  options.source_tokens = 100;
  GeneratorTraits traits;
  traits.decoder_start = {kStart};
  return MakeToyModel(options, traits);
}

Request Document(std::string text, GenerationOptions options = {}) {
  Request request = TextRequest(std::move(text), std::move(options));
  request.task = Task::kText2TextGeneration;
  return request;
}

std::vector<int32_t> Expected(std::string_view document, std::vector<int32_t> start, int tokens) {
  std::vector<int32_t> seen(document.begin(), document.end());
  seen.insert(seen.end(), start.begin(), start.end());
  return ToyDecoder::Greedy(seen, tokens);
}

TEST(Sourced, OutputsFollowTheDocumentAndTheStartToken) {
  const ToyModel toy = MakeSourced();
  EXPECT_EQ(toy.model->info().task, Task::kText2TextGeneration);
  EXPECT_EQ(toy.model->info().max_tokens, 100);
  const Answer answer = Generate(*toy.model, Document("a document", NewTokens(30)));
  ASSERT_EQ(answer.sequences.size(), 1u);
  EXPECT_EQ(answer.sequences[0].token_ids, Expected("a document", {kStart}, 30));
  EXPECT_EQ(answer.usage.input_tokens, 10);
  EXPECT_EQ(toy.counts->encoded, 10);
  EXPECT_EQ(toy.counts->prefilled, 1);
  EXPECT_EQ(toy.counts->documents, 0);
}

TEST(Sourced, PiecesOfADocumentChangeNothingAndOthersGoOnBetween) {
  const std::string text(90, 'q');
  for (const int grant : {8, 16, 64}) {
    const ToyModel toy = MakeSourced();
    Live other = StartOn(*toy.model, Document("another one", NewTokens(40)));
    StepOnce(*toy.model, {&other});
    Live live = StartOn(*toy.model, Document(text, NewTokens(12)));
    while (!live.generation->done()) {
      const int left = live.generation->need().prefill;
      std::vector<Live*> lives = {&live};
      if (!other.generation->done()) lives.push_back(&other);
      StepOnce(*toy.model, lives, grant);
      if (left > 0) {
        EXPECT_EQ(live.generation->need().prefill, std::max(0, left - grant));
      }
    }
    EXPECT_EQ(live.generation->Take()->sequences[0].token_ids, Expected(text, {kStart}, 12));
    const absl::StatusOr<Answer> answer = Finish(*toy.model, other);
    EXPECT_EQ(answer->sequences[0].token_ids, Expected("another one", {kStart}, 40));
  }
}

TEST(Sourced, BeamsAndSamplesShareTheDocument) {
  const ToyModel toy = MakeSourced();
  GenerationOptions options = NewTokens(9);
  options.num_beams = 4;
  Live live = StartOn(*toy.model, Document("shared by beams", options));
  StepOnce(*toy.model, {&live});
  StepOnce(*toy.model, {&live});
  EXPECT_EQ(toy.counts->sequences, 4);
  EXPECT_EQ(toy.counts->documents, 1);
  EXPECT_TRUE(Finish(*toy.model, live).ok());
  EXPECT_EQ(toy.counts->documents, 0);
  EXPECT_EQ(toy.counts->encoded, 15);
}

TEST(Sourced, ScoresOfGreedyOutputsAreNormalisedAsThoseOfBeams) {
  const ToyModel toy = MakeSourced();
  for (const double penalty : {1.0, 2.0}) {
    GenerationOptions options = NewTokens(9);
    options.length_penalty = penalty;
    options.logprobs = 0;
    const Answer answer = Generate(*toy.model, Document("scored", options));
    ASSERT_EQ(answer.sequences.size(), 1u);
    const Piece& output = answer.sequences[0];
    ASSERT_EQ(output.logprobs.size(), output.token_ids.size());
    double sum = 0;
    for (const TokenLogprob& token : output.logprobs) sum += token.logprob;
    EXPECT_LT(output.score, 0);
    EXPECT_NEAR(output.score, sum / std::pow(output.token_ids.size(), penalty), 1e-5);
    options.logprobs.reset();
    EXPECT_EQ(Generate(*toy.model, Document("scored", options)).sequences[0].score, output.score);
  }
}

TEST(Sourced, OutputsMayBeginWithTheRequestsTokens) {
  const ToyModel toy = MakeSourced();
  Request request = Document("text", NewTokens(8));
  for (const bool with_start : {false, true}) {
    TokenInput begin;
    begin.ids = {'a', 'b'};
    if (with_start) begin.ids.insert(begin.ids.begin(), kStart);
    request.decoder_tokens = begin;
    EXPECT_EQ(Generate(*toy.model, request).sequences[0].token_ids,
              Expected("text", {kStart, 'a', 'b'}, 8));
  }
}

TEST(Sourced, LogitsOfAGivenOutputAndTheEncodersStates) {
  const ToyModel toy = MakeSourced();
  Request request = Document("xyz", NewTokens(0));
  request.decoder_tokens.emplace().ids = {'a', 'b'};
  request.tensors = {"encoder_last_hidden_state", "logits"};
  const Answer answer = Generate(*toy.model, request);
  ASSERT_EQ(answer.tensors.size(), 2u);
  EXPECT_EQ(answer.tensors[0].shape, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(answer.tensors[0].floats()[1], 'y');
  ASSERT_EQ(answer.tensors[1].shape, (std::vector<int64_t>{3, 257}));
  const std::vector<int32_t> seen = {'x', 'y', 'z', kStart, 'a', 'b'};
  const std::vector<float> last = ToyLogits(seen);
  const std::span<const float> logits = answer.tensors[1].floats();
  EXPECT_TRUE(std::equal(last.begin(), last.end(), logits.end() - 257));
}

TEST(Sourced, TheOutputsLimitIsTheDecodersAndTheDefault) {
  const ToyModel toy = MakeSourced();
  GenerationOptions options;
  options.ignore_eos = true;
  EXPECT_EQ(Generate(*toy.model, Document("long", options)).sequences[0].token_ids.size(), 40u);
  EXPECT_NE(Refusal(*toy.model, Document("long", NewTokens(41))), "");
  EXPECT_EQ(Refusal(*toy.model, Document("long", NewTokens(40))), "");
}

TEST(Sourced, ProcessorsSeeTheDocumentAsTheEncodersText) {
  const ToyModel toy = MakeSourced();
  GenerationOptions options = NewTokens(30);
  options.ignore_eos = true;
  options.others["encoder_no_repeat_ngram_size"] = "1";
  const std::string document = "abcdefghijklmnop ";
  const Answer answer = Generate(*toy.model, Document(document, options));
  for (const int32_t id : answer.sequences[0].token_ids) {
    EXPECT_EQ(document.find(static_cast<char>(id)), std::string::npos) << id;
  }
}

TEST(Sourced, StateIsTheDocumentsAndTheSequences) {
  const ToyModel toy = MakeSourced();
  const auto item = toy.model->Prepare(Document("0123456789", NewTokens(5)));
  ASSERT_TRUE(item.ok());
  // Start and four tokens read by the one sequence; the fifth is never read.
  EXPECT_EQ((*item)->cost().state_bytes, 10 * 1000 + 10 * 5 + 100);
  EXPECT_GT((*item)->cost().seconds, 1e-4);
}

// Planning it takes as long as reading a piece of it: not on the executor's thread.
TEST(Sourced, ADocumentIsCostedOnceWhenItsRequestIsPrepared) {
  const ToyModel toy = MakeSourced();
  Live live = StartOn(*toy.model, Document("0123456789", NewTokens(5)));
  EXPECT_NEAR(live.generation->need().prefill_seconds, 1e-5, 1e-12);
  EXPECT_TRUE(Finish(*toy.model, live).ok());
  EXPECT_EQ(toy.counts->costed, 1);
}

TEST(Sourced, RefusesWhatMeansNothing) {
  const ToyModel toy = MakeSourced();
  const auto refused = [&](auto change) {
    Request request = Document("text", NewTokens(4));
    change(request);
    return Refusal(*toy.model, request);
  };
  EXPECT_EQ(refused([](Request& r) { r.generation->echo = true; }).substr(0, 5), "echo:");
  EXPECT_EQ(refused([](Request& r) { r.pooling = "mean"; }).substr(0, 8), "pooling:");
  EXPECT_EQ(refused([](Request& r) { r.text_pair = "b"; }).substr(0, 10), "text_pair:");
  EXPECT_EQ(refused([](Request& r) { r.text = std::string(101, 'a'); }),
            "text: 101 tokens are more than the model's limit of 100; \"truncate\" cuts what does "
            "not fit");
  EXPECT_EQ(refused([](Request& r) { r.global_positions = {{4}}; }),
            "global_positions: 4 is not in [0, 4), the document's tokens");
  EXPECT_EQ(refused([](Request& r) { r.tensors = {"logits"}; }),
            "outputs: \"logits\" needs max_tokens 0: they are those of decoder_input_ids");
  EXPECT_EQ(refused([](Request& r) { r.decoder_tokens.emplace().ids = {300}; }),
            "decoder_input_ids: 300 at position 0 is not in [0, 257)");
  EXPECT_EQ(refused([](Request& r) { r.decoder_tokens.emplace().ids.assign(40, 1); }),
            "decoder_input_ids: 41 tokens, start included, are more than the 40 the decoder has "
            "positions for");
  Request causal = Document("text");
  causal.task = Task::kTextGeneration;
  EXPECT_NE(Refusal(*toy.model, causal).find("it does text2text-generation"), std::string::npos);
  EXPECT_FALSE(toy.model->NewDocument().ok());
  EXPECT_EQ(refused([](Request& r) {
              r.text = std::string(150, 'a');
              r.truncate = true;
            }),
            "");
}

}  // namespace
}  // namespace longview::models
