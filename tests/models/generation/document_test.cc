// Documents read ahead and continued by several requests.
#include <gtest/gtest.h>

#include "tests/models/generation/generator_driver.h"

namespace longview::models {
namespace {

Request Extension(const std::shared_ptr<Document>& document, std::string text) {
  Request request;
  request.task = Task::kTextGeneration;
  request.text = std::move(text);
  request.document = document;
  request.extend_document = true;
  return request;
}

std::shared_ptr<Document> Read(const ToyModel& toy, const std::vector<std::string>& pieces) {
  const std::shared_ptr<Document> document = *toy.model->NewDocument();
  for (const std::string& piece : pieces) Generate(*toy.model, Extension(document, piece), 8);
  return document;
}

Request Question(const std::shared_ptr<Document>& document, std::optional<std::string> text,
                 GenerationOptions options) {
  Request request = TextRequest("", std::move(options));
  request.text = std::move(text);
  request.document = document;
  return request;
}

GenerationOptions Seeded(uint32_t seed) {
  GenerationOptions options = NewTokens(12);
  options.temperature = 1;
  options.seed = seed;
  return options;
}

TEST(Document, ContinuingIsReadingItAll) {
  const std::vector<std::string> pieces = {"a first piece, ", "x", "and a last one of some length"};
  for (const std::string question : {"why?", ""}) {
    const ToyModel once = MakeToyModel();
    const Answer expected =
        Generate(*once.model, TextRequest(pieces[0] + pieces[1] + pieces[2] + question, Seeded(3)));
    const ToyModel toy = MakeToyModel();
    const std::shared_ptr<Document> document = Read(toy, pieces);
    EXPECT_EQ(document->tokens(), 45);
    std::optional<std::string> text;
    if (!question.empty()) text = question;
    const Answer answer = Generate(*toy.model, Question(document, text, Seeded(3)));
    EXPECT_EQ(answer.sequences[0].token_ids, expected.sequences[0].token_ids);
    EXPECT_EQ(answer.usage.input_tokens, 45 + static_cast<int>(question.size()));
    EXPECT_EQ(answer.usage.cached_tokens, 40);
  }
}

TEST(Document, WhatItReadIsFoundInItsSpaceAlone) {
  const ToyModel toy = MakeToyModel();
  const std::shared_ptr<Document> document = *toy.model->NewDocument();
  const std::string text(50, 'd');
  Request piece = Extension(document, text);
  piece.cache_space = 1;
  Generate(*toy.model, piece, 8);
  for (const auto& [space, cached] : {std::pair{0, 0}, {1, 48}, {2, 0}}) {
    Request prompt = TextRequest(text, NewTokens(1));
    prompt.cache_space = static_cast<uint64_t>(space);
    EXPECT_EQ(Generate(*toy.model, prompt).usage.cached_tokens, cached) << space;
  }
}

TEST(Document, IsAskedManyTimesAndStaysAsItIs) {
  const ToyModel toy = MakeToyModel();
  const std::shared_ptr<Document> document = Read(toy, {std::string(50, 'd')});
  EXPECT_EQ(toy.counts->prefilled, 48);
  std::vector<Live> lives;
  for (uint32_t i = 0; i < 5; ++i) {
    lives.push_back(StartOn(*toy.model, Question(document, "q", Seeded(i % 2))));
  }
  std::vector<std::vector<int32_t>> ids;
  for (Live& live : lives) ids.push_back(Finish(*toy.model, live)->sequences[0].token_ids);
  EXPECT_EQ(ids[0], ids[2]);
  EXPECT_EQ(ids[1], ids[3]);
  EXPECT_NE(ids[0], ids[1]);
  EXPECT_EQ(toy.counts->prefilled, 48 + 5 * 3);
  EXPECT_EQ(document->tokens(), 50);
}

TEST(Document, ShortPiecesAreDoneWithoutAStep) {
  const ToyModel toy = MakeToyModel();
  const std::shared_ptr<Document> document = *toy.model->NewDocument();
  Live live = StartOn(*toy.model, Extension(document, "short"));
  EXPECT_TRUE(live.generation->done());
  EXPECT_EQ(live.generation->Take()->usage.input_tokens, 5);
  EXPECT_EQ(document->tokens(), 5);
  EXPECT_EQ(toy.counts->prefilled, 0);
}

TEST(Document, BytesGrowWithItAndForksShareThem) {
  const ToyModel toy = MakeToyModel();
  const std::shared_ptr<Document> document = *toy.model->NewDocument();
  EXPECT_EQ(document->state_bytes(), 0);
  double reserved = 0;
  for (int i = 0; i < 3; ++i) {
    Live live = StartOn(*toy.model, Extension(document, std::string(40, 'b')));
    reserved += live.item->cost().state_bytes;
    ASSERT_TRUE(Finish(*toy.model, live).ok());
    EXPECT_EQ(document->state_bytes(), reserved);
  }
  const auto shared = toy.model->Prepare(Question(document, "q", NewTokens(10)));
  const auto alone = toy.model->Prepare(TextRequest(std::string(121, 'b'), NewTokens(10)));
  EXPECT_LT((*shared)->cost().state_bytes, (*alone)->cost().state_bytes / 2);
  EXPECT_GT((*shared)->cost().state_bytes, 10 * 11);
  EXPECT_LT((*shared)->cost().seconds, (*alone)->cost().seconds);
}

TEST(Document, ScoresAPromptBehindIt) {
  const ToyModel toy = MakeToyModel();
  const std::string text(41, 'c'), prompt = "scored";
  GenerationOptions options = NewTokens(0);
  options.echo = true;
  options.logprobs = 0;
  const Answer whole = Generate(*toy.model, TextRequest(text + prompt, options));
  const std::shared_ptr<Document> document = Read(toy, {text});
  const Answer behind = Generate(*toy.model, Question(document, prompt, options), 8);
  ASSERT_EQ(behind.prompt->logprobs.size(), prompt.size());
  for (size_t t = 0; t < prompt.size(); ++t) {
    EXPECT_EQ(behind.prompt->logprobs[t].logprob, whole.prompt->logprobs[text.size() + t].logprob);
  }
}

TEST(Document, TheFirstTokenStandsBeforeItOnce) {
  GeneratorTraits traits;
  traits.bos = ::longview::testing::kToyEnd;
  const ToyModel toy = MakeToyModel({}, traits);
  const std::shared_ptr<Document> document = Read(toy, {"", "one", "two"});
  EXPECT_EQ(document->tokens(), 7);
  const Answer whole = Generate(*toy.model, TextRequest("onetwoask", Seeded(1)));
  const Answer behind = Generate(*toy.model, Question(document, "ask", Seeded(1)));
  EXPECT_EQ(behind.sequences[0].token_ids, whole.sequences[0].token_ids);
}

TEST(Document, LimitsCountItsTokens) {
  const ToyModel toy = MakeToyModel({.max_tokens = 64, .prefill_alignment = 8});
  const std::shared_ptr<Document> document = Read(toy, {std::string(50, 'd')});
  EXPECT_NE(Refusal(*toy.model, Question(document, "question", NewTokens(7)))
                .find("max_new_tokens: 7 after 58 tokens are more than the model's limit of 64; "
                      "at most 6 are left"),
            std::string::npos);
  EXPECT_NE(Refusal(*toy.model, Extension(document, std::string(15, 'x'))).find("15 tokens after"),
            std::string::npos);
  EXPECT_EQ(Refusal(*toy.model, Extension(document, std::string(14, 'x'))), "");
}

TEST(Document, APieceThatWasNotReadToItsEndSpoilsIt) {
  const ToyModel toy = MakeToyModel();
  const std::shared_ptr<Document> document = Read(toy, {"fine"});
  {
    Live live = StartOn(*toy.model, Extension(document, std::string(60, 'x')));
    StepOnce(*toy.model, {&live}, 16);
    EXPECT_FALSE(live.generation->done());
  }
  const auto item = toy.model->Prepare(Question(document, "q", NewTokens(3)));
  EXPECT_EQ(toy.model->Start(**item).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(toy.counts->sequences, 0);
}

TEST(Document, ReadingInBetweenIsNoticed) {
  const ToyModel toy = MakeToyModel();
  const std::shared_ptr<Document> document = Read(toy, {"fine"});
  const auto item = toy.model->Prepare(Question(document, "q", NewTokens(3)));
  Generate(*toy.model, Extension(document, "more"));
  const absl::Status status = toy.model->Start(**item).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("it had 4 tokens and has 8"), std::string::npos) << status;
}

TEST(Document, DoesNotGenerateWhileItIsRead) {
  const ToyModel toy = MakeToyModel();
  Request request = Extension(*toy.model->NewDocument(), "text");
  request.generation = NewTokens(4);
  EXPECT_NE(Refusal(*toy.model, request).find("document: is read into"), std::string::npos);
  request.generation.reset();
  request.text.reset();
  EXPECT_NE(Refusal(*toy.model, request).find("text: "), std::string::npos);
}

}  // namespace
}  // namespace longview::models
