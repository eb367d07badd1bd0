// Beam search through a decoder: the same as the search alone on rows computed by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "models/generation/sampling/beam_search.h"
#include "tests/models/generation/generator_driver.h"

namespace longview::models {
namespace {

using ::longview::testing::kToyEnd;
using ::longview::testing::kToyVocab;
using ::longview::testing::ToyLogits;

std::vector<int32_t> Bytes(std::string_view text) { return {text.begin(), text.end()}; }

// Searches with every row computed from the whole sequence.
std::vector<BeamSearch::Finished> Reference(const Model& model, const Request& request,
                                            const std::vector<int32_t>& prompt) {
  const std::vector<int32_t> eos = {kToyEnd};
  const SettingsContext context = {.vocab = kToyVocab,
                                   .prompt = static_cast<int>(prompt.size()),
                                   .room = model.info().max_tokens,
                                   .eos = &eos};
  const GenerationSettings settings = *ResolveSettings(*request.generation, {}, context);
  const LogitsProcessors processors(settings, prompt);
  BeamSearch search(settings, processors,
                    TokenHistory(prompt, kToyVocab, processors.needs_distinct()), nullptr);
  std::vector<std::vector<int32_t>> beams(static_cast<size_t>(settings.beams), prompt);
  while (!search.done()) {
    std::vector<std::vector<float>> rows;
    for (const auto& beam : beams) rows.push_back(ToyLogits(beam));
    const std::vector<std::span<const float>> views(rows.begin(), rows.end());
    EXPECT_TRUE(search.Advance(views).ok());
    std::vector<std::vector<int32_t>> next;
    for (size_t b = 0; b < search.parents().size(); ++b) {
      next.push_back(beams[static_cast<size_t>(search.parents()[b])]);
      next.back().push_back(search.token(static_cast<int>(b)));
    }
    beams = std::move(next);
  }
  return search.Take();
}

void ExpectSame(const Answer& answer, const std::vector<BeamSearch::Finished>& expected) {
  ASSERT_EQ(answer.sequences.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(answer.sequences[i].token_ids, expected[i].tokens);
    EXPECT_FLOAT_EQ(answer.sequences[i].score, static_cast<float>(expected[i].score));
    EXPECT_EQ(answer.sequences[i].finish_reason, expected[i].ended ? "stop" : "length");
    EXPECT_EQ(answer.sequences[i].index, static_cast<int>(i));
  }
}

TEST(Beams, ForksFollowTheSearch) {
  const ToyModel toy = MakeToyModel();
  for (const int beams : {2, 4, 7}) {
    for (const bool sample : {false, true}) {
      for (const double penalty : {-1.0, 0.0, 1.0, 2.0}) {
        GenerationOptions options = NewTokens(20);
        options.num_beams = beams;
        options.num_return_sequences = beams;
        options.length_penalty = penalty;
        options.no_repeat_ngram_size = 3;
        options.do_sample = sample;
        options.seed = 5;
        const Request request = TextRequest("beams of the toy", options);
        ExpectSame(Generate(*toy.model, request, 8),
                   Reference(*toy.model, request, Bytes("beams of the toy")));
      }
    }
  }
  EXPECT_EQ(toy.counts->sequences, 0);
}

// The model's fault, whatever the options.
TEST(Beams, LogitsThatAreNoNumbersAreAnInternalError) {
  for (const bool sample : {false, true}) {
    GenerationSettings settings;
    settings.beams = 2;
    settings.max_new_tokens = 4;
    settings.sample = sample;
    const LogitsProcessors processors(settings, {});
    BeamSearch search(settings, processors, TokenHistory({}, kToyVocab, false), nullptr);
    std::vector<float> row = ToyLogits({});
    row[5] = std::nanf("");
    const std::vector<std::span<const float>> rows(2, row);
    EXPECT_EQ(search.Advance(rows).code(), absl::StatusCode::kInternal) << sample;
  }
}

TEST(Beams, FindAtLeastWhatGreedySearchFinds) {
  const ToyModel toy = MakeToyModel();
  GenerationOptions options = NewTokens(8);
  options.ignore_eos = true;
  options.logprobs = 0;
  const Piece greedy = Generate(*toy.model, TextRequest("start", options)).sequences[0];
  options.num_beams = 8;
  const Piece beam = Generate(*toy.model, TextRequest("start", options)).sequences[0];
  double greedy_sum = 0, beam_sum = 0;
  for (const TokenLogprob& entry : greedy.logprobs) greedy_sum += entry.logprob;
  for (const TokenLogprob& entry : beam.logprobs) beam_sum += entry.logprob;
  EXPECT_GE(beam_sum, greedy_sum - 1e-6);
  EXPECT_NEAR(beam.score, beam_sum / 8, 1e-5);
}

TEST(Beams, PiecesComeAtTheEnd) {
  const ToyModel toy = MakeToyModel();
  GenerationOptions options = NewTokens(6);
  options.num_beams = 3;
  options.num_return_sequences = 2;
  Live live = StartOn(*toy.model, TextRequest("pieces", options));
  EXPECT_EQ(live.generation->need().sequences, 3);
  StepOnce(*toy.model, {&live});
  StepOnce(*toy.model, {&live});
  EXPECT_TRUE(live.pieces.empty());
  const absl::StatusOr<Answer> answer = Finish(*toy.model, live);
  ASSERT_EQ(live.pieces.size(), 2u);
  EXPECT_EQ(live.pieces[0].text, answer->sequences[0].text);
  EXPECT_EQ(answer->usage.output_tokens, static_cast<int>(answer->sequences[0].token_ids.size() +
                                                          answer->sequences[1].token_ids.size()));
}

TEST(Beams, StandStillBesideOthers) {
  const ToyModel toy = MakeToyModel();
  GenerationOptions options = NewTokens(10);
  options.num_beams = 4;
  const Answer alone = Generate(*toy.model, TextRequest("search", options));
  Live search = StartOn(*toy.model, TextRequest("search", options));
  Live other = StartOn(*toy.model, TextRequest("other", NewTokens(40)));
  while (!search.generation->done()) {
    std::vector<Live*> lives = {&search};
    if (!other.generation->done()) lives.insert(lives.begin(), &other);
    StepOnce(*toy.model, lives, 8);
  }
  EXPECT_EQ(search.generation->Take()->sequences[0].token_ids, alone.sequences[0].token_ids);
}

}  // namespace
}  // namespace longview::models
