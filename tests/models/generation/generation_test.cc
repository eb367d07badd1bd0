// Generating over the toy decoder: prompts, samples, batch mates, pieces, scoring.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "models/generation/sampling/log_probabilities.h"
#include "models/text/utf8.h"
#include "tests/models/generation/generator_driver.h"

namespace longview::models {
namespace {

using ::longview::testing::kToyEnd;
using ::longview::testing::kToyVocab;
using ::longview::testing::ToyDecoder;
using ::longview::testing::ToyLogits;

std::vector<int32_t> Bytes(std::string_view text) { return {text.begin(), text.end()}; }

GenerationOptions Sampling(int tokens, uint32_t seed, double temperature = 1.0) {
  GenerationOptions options = NewTokens(tokens);
  options.temperature = temperature;
  options.seed = seed;
  return options;
}

std::vector<std::vector<int32_t>> Ids(const Answer& answer) {
  std::vector<std::vector<int32_t>> ids;
  for (const Piece& piece : answer.sequences) ids.push_back(piece.token_ids);
  return ids;
}

TEST(Generation, GreedyIsTheArgmaxOfEveryStep) {
  const ToyModel toy = MakeToyModel();
  const Answer answer = Generate(*toy.model, TextRequest("the toy model", NewTokens(40)));
  ASSERT_EQ(answer.sequences.size(), 1u);
  EXPECT_EQ(answer.sequences[0].token_ids, ToyDecoder::Greedy(Bytes("the toy model"), 40));
  EXPECT_EQ(answer.usage.input_tokens, 13);
  EXPECT_EQ(answer.usage.output_tokens, static_cast<int>(answer.sequences[0].token_ids.size()));
  EXPECT_EQ(answer.usage.cached_tokens, 0);
}

TEST(Generation, PrefillInChunksChangesNothing) {
  const std::string prompt(101, 'q');
  std::vector<std::vector<int32_t>> whole;
  for (const int grant : {0, 8, 16, 96}) {
    const ToyModel toy = MakeToyModel();
    const Answer answer = Generate(*toy.model, TextRequest(prompt, Sampling(20, 5)), grant);
    if (whole.empty()) whole = Ids(answer);
    EXPECT_EQ(Ids(answer), whole) << grant;
  }
}

TEST(Generation, EndsWithStopOrLength) {
  const ToyModel toy = MakeToyModel();
  bool stopped = false, limited = false;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const Answer answer = Generate(*toy.model, TextRequest("x", Sampling(12, seed)));
    const Piece& piece = answer.sequences[0];
    const bool end = piece.token_ids.back() == kToyEnd;
    EXPECT_EQ(piece.finish_reason, end ? "stop" : "length");
    std::string bytes;
    for (const int32_t id : piece.token_ids) bytes += ::longview::testing::ToyCodec().Bytes(id);
    EXPECT_EQ(piece.text, ReplaceInvalidUtf8(bytes));
    if (!end) {
      EXPECT_EQ(piece.token_ids.size(), 12u);
    }
    (end ? stopped : limited) = true;
  }
  EXPECT_TRUE(stopped && limited);
}

TEST(Generation, IgnoredEndsDoNotEnd) {
  const ToyModel toy = MakeToyModel();
  bool seen = false;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    GenerationOptions options = Sampling(30, seed);
    options.ignore_eos = true;
    const Piece piece = Generate(*toy.model, TextRequest("x", options)).sequences[0];
    EXPECT_EQ(piece.token_ids.size(), 30u);
    EXPECT_EQ(piece.finish_reason, "length");
    seen = seen || std::count(piece.token_ids.begin(), piece.token_ids.end(), kToyEnd) > 0;
  }
  EXPECT_TRUE(seen);
}

TEST(Generation, EqualSeedsGiveEqualTokensAmongAnyBatchMates) {
  const ToyModel alone = MakeToyModel();
  std::vector<Request> requests;
  std::vector<std::vector<std::vector<int32_t>>> expected;
  for (uint32_t i = 0; i < 33; ++i) {
    GenerationOptions options = Sampling(static_cast<int>(5 + i), 1000 + i, i % 3 == 0 ? 0 : 0.9);
    if (i % 3 == 1) options.num_return_sequences = 3;
    if (i % 4 == 2) options.repetition_penalty = 1.4;
    if (i % 5 == 3) options.top_p = 0.7;
    requests.push_back(
        TextRequest(std::string(3 * i + 1, static_cast<char>('a' + i % 26)), options));
    expected.push_back(Ids(Generate(*alone.model, requests.back())));
  }
  // Joining and leaving at random steps, with random grants.
  const ToyModel together = MakeToyModel();
  std::minstd_rand random(7);
  std::vector<std::pair<size_t, Live>> running;
  size_t next = 0, finished = 0;
  while (finished < requests.size()) {
    while (next < requests.size() && (running.empty() || random() % 3 != 0)) {
      running.emplace_back(next, StartOn(*together.model, requests[next]));
      ++next;
    }
    std::vector<Live*> lives;
    for (auto& [i, live] : running) {
      if (lives.empty() || random() % 4 != 0) lives.push_back(&live);
    }
    StepOnce(*together.model, lives, 8 * static_cast<int>(1 + random() % 4));
    for (auto entry = running.begin(); entry != running.end();) {
      if (!entry->second.generation->done()) {
        ++entry;
        continue;
      }
      EXPECT_EQ(Ids(*entry->second.generation->Take()), expected[entry->first]) << entry->first;
      entry = running.erase(entry);
      ++finished;
    }
  }
  EXPECT_EQ(together.counts->sequences, 0);
}

TEST(Generation, SamplesForkAndEqualThoseOfTheirIndex) {
  const ToyModel toy = MakeToyModel();
  GenerationOptions options = Sampling(25, 99);
  options.num_return_sequences = 4;
  const Answer four = Generate(*toy.model, TextRequest("a prompt to fork", options));
  EXPECT_EQ(toy.counts->forks, 3);
  ASSERT_EQ(four.sequences.size(), 4u);
  for (int index = 0; index < 4; ++index) EXPECT_EQ(four.sequences[index].index, index);
  // Fewer samples are the first of them: a sample does not depend on how many there are.
  for (const int n : {1, 2, 3}) {
    options.num_return_sequences = n;
    const auto fewer = Ids(Generate(*toy.model, TextRequest("a prompt to fork", options)));
    const auto all = Ids(four);
    EXPECT_TRUE(std::equal(fewer.begin(), fewer.end(), all.begin())) << n;
  }
  EXPECT_NE(four.sequences[0].token_ids, four.sequences[1].token_ids);
  EXPECT_EQ(toy.counts->sequences, 0);
}

TEST(Generation, PiecesPutTogetherAreTheAnswer) {
  const ToyModel toy = MakeToyModel();
  GenerationOptions options = Sampling(40, 3);
  options.num_return_sequences = 3;
  options.stop = {"e", "tt"};
  options.logprobs = 2;
  Live live = StartOn(*toy.model, TextRequest("pieces", options));
  const absl::StatusOr<Answer> answer = Finish(*toy.model, live);
  ASSERT_TRUE(answer.ok());
  EXPECT_GT(live.pieces.size(), 3u);
  for (const Piece& whole : answer->sequences) {
    const Piece joined = Joined(live.pieces, whole.index);
    EXPECT_EQ(joined.text, whole.text);
    EXPECT_EQ(joined.token_ids, whole.token_ids);
    EXPECT_EQ(joined.logprobs.size(), whole.logprobs.size());
    EXPECT_EQ(joined.finish_reason, whole.finish_reason);
    EXPECT_EQ(whole.logprobs.size(), whole.token_ids.size());
  }
}

TEST(Generation, StopStringsCutAcrossPieces) {
  const ToyModel toy = MakeToyModel();
  const Answer free = Generate(*toy.model, TextRequest("the toy model", NewTokens(30)));
  const std::string text = free.sequences[0].text;
  ASSERT_GT(text.size(), 12u);
  const std::string stop = text.substr(5, 4);
  ASSERT_EQ(text.find(stop), 5u);
  GenerationOptions options = NewTokens(30);
  options.stop = {stop};
  Live live = StartOn(*toy.model, TextRequest("the toy model", options));
  const absl::StatusOr<Answer> answer = Finish(*toy.model, live);
  const Piece& piece = answer->sequences[0];
  EXPECT_EQ(piece.text, text.substr(0, 5));
  EXPECT_EQ(piece.finish_reason, "stop");
  EXPECT_EQ(piece.token_ids.size(), 9u);
  EXPECT_EQ(Joined(live.pieces, 0).text, piece.text);
}

TEST(Generation, LogProbabilitiesAreTheModelsOwn) {
  const ToyModel toy = MakeToyModel();
  GenerationOptions options = Sampling(10, 4, 0.5);
  options.logprobs = 5;
  options.repetition_penalty = 1.5;
  options.top_k = 3;
  const Piece piece = Generate(*toy.model, TextRequest("own", options)).sequences[0];
  std::vector<int32_t> context = Bytes("own");
  ASSERT_EQ(piece.top.size(), piece.token_ids.size());
  for (size_t t = 0; t < piece.token_ids.size(); ++t) {
    const std::vector<float> logits = ToyLogits(context);
    EXPECT_EQ(piece.logprobs[t].id, piece.token_ids[t]);
    EXPECT_FLOAT_EQ(piece.logprobs[t].logprob, LogProbability(logits, piece.token_ids[t]));
    ASSERT_EQ(piece.top[t].size(), 5u);
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    EXPECT_EQ(piece.top[t][0].id, best);
    for (size_t i = 1; i < 5; ++i) {
      EXPECT_GE(piece.top[t][i - 1].logprob, piece.top[t][i].logprob);
    }
    context.push_back(piece.token_ids[t]);
  }
}

TEST(Generation, EchoComesFirstAndOnce) {
  const ToyModel toy = MakeToyModel();
  GenerationOptions options = Sampling(5, 1);
  options.echo = true;
  options.num_return_sequences = 2;
  Live live = StartOn(*toy.model, TextRequest("say it", options));
  const absl::StatusOr<Answer> answer = Finish(*toy.model, live, 8);
  ASSERT_TRUE(answer->prompt.has_value());
  EXPECT_EQ(answer->prompt->text, "say it");
  EXPECT_TRUE(live.pieces.front().echo);
  EXPECT_EQ(live.pieces.front().text, "say it");
  EXPECT_EQ(std::count_if(live.pieces.begin(), live.pieces.end(),
                          [](const Piece& piece) { return piece.echo; }),
            1);
}

TEST(Generation, ScoresThePromptWithoutGenerating) {
  const std::string text = "score these bytes, all of them";
  for (const int grant : {0, 8}) {
    const ToyModel toy = MakeToyModel();
    GenerationOptions options = NewTokens(0);
    options.echo = true;
    options.logprobs = 1;
    options.num_return_sequences = 2;
    Request request = TextRequest(text, options);
    request.tensors = {"logits"};
    const Answer answer = Generate(*toy.model, request, grant);
    ASSERT_EQ(answer.sequences.size(), 2u);
    EXPECT_EQ(answer.sequences[1].finish_reason, "length");
    EXPECT_TRUE(answer.sequences[1].token_ids.empty());
    EXPECT_EQ(answer.usage.output_tokens, 0);
    ASSERT_TRUE(answer.prompt.has_value());
    const std::vector<TokenLogprob>& scores = answer.prompt->logprobs;
    ASSERT_EQ(scores.size(), text.size());
    EXPECT_TRUE(std::isnan(scores[0].logprob));
    EXPECT_TRUE(answer.prompt->top[0].empty());
    const HostTensor* logits = answer.Find("logits");
    ASSERT_NE(logits, nullptr);
    EXPECT_EQ(logits->shape, (std::vector<int64_t>{static_cast<int64_t>(text.size()), kToyVocab}));
    const std::vector<int32_t> ids = Bytes(text);
    for (size_t t = 0; t < ids.size(); ++t) {
      const std::vector<float> row = ToyLogits(std::span(ids).first(t + 1));
      const auto got = logits->floats().subspan(t * kToyVocab, kToyVocab);
      EXPECT_TRUE(std::equal(row.begin(), row.end(), got.begin()));
      if (t + 1 == ids.size()) break;
      EXPECT_FLOAT_EQ(scores[t + 1].logprob, LogProbability(row, ids[t + 1]));
      EXPECT_EQ(scores[t + 1].bytes, text.substr(t + 1, 1));
    }
  }
}

TEST(Generation, ScoringEndsWithOnePieceEach) {
  const ToyModel toy = MakeToyModel();
  GenerationOptions options = NewTokens(0);
  options.num_return_sequences = 2;
  options.echo = true;
  Live live = StartOn(*toy.model, TextRequest("score", options));
  ASSERT_TRUE(Finish(*toy.model, live).ok());
  ASSERT_EQ(live.pieces.size(), 3u);
  EXPECT_TRUE(live.pieces[0].echo);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(live.pieces[static_cast<size_t>(i) + 1].index, i);
    EXPECT_EQ(live.pieces[static_cast<size_t>(i) + 1].finish_reason, "length");
  }
}

TEST(Generation, ScoresAlsoWhereTheCacheKnowsThePrompt) {
  const ToyModel toy = MakeToyModel();
  const std::string text(50, 'k');
  Generate(*toy.model, TextRequest(text, NewTokens(1)));
  GenerationOptions options = NewTokens(0);
  options.echo = true;
  options.logprobs = 0;
  const Answer answer = Generate(*toy.model, TextRequest(text, options));
  EXPECT_EQ(answer.prompt->logprobs.size(), text.size());
  EXPECT_EQ(answer.usage.cached_tokens, 0);
}

TEST(Generation, PromptsSeenBeforeAreNotReadAgain) {
  const ToyModel toy = MakeToyModel();
  const std::string shared(40, 's');
  const Answer first = Generate(*toy.model, TextRequest(shared + "one", Sampling(8, 1)));
  EXPECT_EQ(toy.counts->prefilled, 43);
  const Answer again = Generate(*toy.model, TextRequest(shared + "one", Sampling(8, 1)));
  EXPECT_EQ(again.usage.cached_tokens, 40);
  EXPECT_EQ(toy.counts->prefilled, 46);
  EXPECT_EQ(Ids(again), Ids(first));
  const Answer other = Generate(*toy.model, TextRequest(shared, Sampling(8, 1)));
  EXPECT_EQ(other.usage.cached_tokens, 32);
}

TEST(Generation, AnotherSpaceReadsAnew) {
  const ToyModel toy = MakeToyModel();
  Request request = TextRequest(std::string(43, 's'), Sampling(8, 1));
  request.cache_space = 1;
  Generate(*toy.model, request);
  request.cache_space = 2;
  EXPECT_EQ(Generate(*toy.model, request).usage.cached_tokens, 0);
  EXPECT_EQ(toy.counts->prefilled, 86);
  request.cache_space = 1;
  EXPECT_EQ(Generate(*toy.model, request).usage.cached_tokens, 40);
}

TEST(Generation, TheFirstTokenOfTheModelStandsBeforeTexts) {
  GeneratorTraits traits;
  traits.bos = kToyEnd;
  const ToyModel toy = MakeToyModel({}, traits);
  const Answer empty = Generate(*toy.model, TextRequest("", NewTokens(6)));
  EXPECT_EQ(empty.sequences[0].token_ids, ToyDecoder::Greedy({kToyEnd}, 6));
  EXPECT_EQ(empty.usage.input_tokens, 1);
  const Answer ids = Generate(*toy.model, IdsRequest(Bytes("abc"), NewTokens(6)));
  EXPECT_EQ(ids.sequences[0].token_ids, ToyDecoder::Greedy(Bytes("abc"), 6));
}

TEST(Generation, AFailedStepFailsItsGenerations) {
  const ToyModel toy = MakeToyModel();
  Live first = StartOn(*toy.model, TextRequest("one", NewTokens(5)));
  Live second = StartOn(*toy.model, TextRequest("two", NewTokens(5)));
  toy.counts->fail = true;
  StepOnce(*toy.model, {&first, &second});
  for (Live* live : {&first, &second}) {
    EXPECT_TRUE(live->generation->done());
    EXPECT_EQ(live->generation->Take().status().code(), absl::StatusCode::kResourceExhausted);
    live->generation.reset();
  }
  EXPECT_EQ(toy.counts->sequences, 0);
}

TEST(Generation, DroppedGrantsLeaveTheOthersAlone) {
  const ToyModel toy = MakeToyModel();
  Live stays = StartOn(*toy.model, TextRequest("the toy model", NewTokens(9)));
  GenerationOptions many = Sampling(9, 2);
  many.num_return_sequences = 3;
  Live leaves = StartOn(*toy.model, TextRequest("leaves", many));
  StepOnce(*toy.model, {&leaves, &stays});
  const StepGrant grants[] = {{leaves.generation.get(), 0}, {stays.generation.get(), 0}};
  std::unique_ptr<models::Run> run = toy.model->BeginStep(grants);
  EXPECT_TRUE(run->Advance());
  run->Drop(0);
  while (run->Advance()) {
  }
  run.reset();
  leaves.generation.reset();
  EXPECT_EQ(toy.counts->sequences, 1);
  const absl::StatusOr<Answer> answer = Finish(*toy.model, stays);
  EXPECT_EQ(answer->sequences[0].token_ids, ToyDecoder::Greedy(Bytes("the toy model"), 9));
}

TEST(Generation, NeedsArePricedAsTheyAreUsed) {
  const ToyModel toy = MakeToyModel();
  GenerationOptions options = Sampling(4, 2);
  options.num_return_sequences = 2;
  options.ignore_eos = true;
  Live live = StartOn(*toy.model, TextRequest(std::string(20, 'n'), options));
  EXPECT_EQ(live.generation->need().prefill, 20);
  EXPECT_DOUBLE_EQ(live.generation->need().prefill_seconds, 100e-6);
  StepOnce(*toy.model, {&live}, 16);
  EXPECT_EQ(live.generation->need().prefill, 4);
  EXPECT_DOUBLE_EQ(live.generation->need().prefill_seconds, 116e-6);
  StepOnce(*toy.model, {&live}, 16);
  EXPECT_EQ(live.generation->need().prefill, 0);
  EXPECT_EQ(live.generation->need().sequences, 2);
  EXPECT_DOUBLE_EQ(live.generation->need().decode_seconds, 2 * 2e-6 * 121);
}

TEST(Generation, BytesAreReservedForAllThatMayBeRead) {
  const ToyModel toy = MakeToyModel();
  GenerationOptions options = Sampling(11, 2);
  options.num_return_sequences = 3;
  const auto item = toy.model->Prepare(TextRequest(std::string(20, 'n'), options));
  // 20 shared tokens, 10 more are read by each of three.
  EXPECT_DOUBLE_EQ((*item)->cost().state_bytes, 10 * (20 + 3 * 10) + 300);
  EXPECT_GT((*item)->cost().seconds, 20 * 100e-6);
}

TEST(Generation, ThePromptWithItsScoresIsReserved) {
  const ToyModel toy = MakeToyModel();
  GenerationOptions options = NewTokens(0);
  const std::string text(500, 'n');
  const auto plain = toy.model->Prepare(TextRequest(text, options));
  EXPECT_EQ((*plain)->cost().answer_bytes, 0);
  options.echo = true;
  options.logprobs = 20;
  const auto item = toy.model->Prepare(TextRequest(text, options));
  const double bytes = (*item)->cost().answer_bytes;
  EXPECT_DOUBLE_EQ((*item)->cost().state_bytes, (*plain)->cost().state_bytes + bytes);
  const Answer answer = Generate(*toy.model, TextRequest(text, options));
  const Piece& prompt = *answer.prompt;
  double held = static_cast<double>(prompt.text.size() + prompt.token_ids.size() * sizeof(int32_t) +
                                    prompt.logprobs.size() * sizeof(TokenLogprob));
  for (const auto& top : prompt.top) {
    held += static_cast<double>(sizeof(top) + top.capacity() * sizeof(TokenLogprob));
  }
  EXPECT_LE(held, bytes);
  EXPECT_GE(held, 0.95 * bytes);
}

TEST(Generation, TokensWithTheirScoresAreCounted) {
  const ToyModel toy = MakeToyModel();
  GenerationOptions options = NewTokens(40);
  for (const std::optional<int> logprobs : {std::optional<int>(), {0}, {20}}) {
    options.logprobs = logprobs;
    const Request request = TextRequest(std::string(20, 'n'), options);
    const double bytes = (*toy.model->Prepare(request))->cost().token_bytes;
    const Answer answer = Generate(*toy.model, request);
    const Piece& piece = answer.sequences[0];
    double held = static_cast<double>(piece.token_ids.size() * sizeof(int32_t) +
                                      piece.logprobs.size() * sizeof(TokenLogprob));
    for (const auto& top : piece.top) {
      held += static_cast<double>(sizeof(top) + top.capacity() * sizeof(TokenLogprob));
    }
    const auto tokens = static_cast<double>(piece.token_ids.size());
    EXPECT_LE(held, bytes * tokens);
    EXPECT_GE(held, (bytes - 25) * tokens);  // Beside the text and the allocator's own.
  }
}

// The tensor until the answer is taken, and the rows of the step that makes it.
TEST(Generation, LogitsOfThePromptAreReserved) {
  const ToyModel toy = MakeToyModel();
  Request request = TextRequest(std::string(20, 'n'), NewTokens(0));
  const auto plain = toy.model->Prepare(request);
  request.tensors = {"logits"};
  const auto item = toy.model->Prepare(request);
  const double bytes = 20 * kToyVocab * sizeof(float);
  EXPECT_DOUBLE_EQ((*item)->cost().state_bytes, (*plain)->cost().state_bytes + bytes);
  EXPECT_DOUBLE_EQ((*item)->cost().workspace_bytes, (*plain)->cost().workspace_bytes + bytes);
  const Answer answer = Generate(*toy.model, request, 8);
  EXPECT_EQ(answer.tensors.at(0).data.size(), static_cast<size_t>(bytes));
  EXPECT_EQ(answer.tensors.at(0).data.capacity(), static_cast<size_t>(bytes));
}

}  // namespace
}  // namespace longview::models
