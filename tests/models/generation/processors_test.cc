// Single processors and filters, on the vectors of the LED specification and by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "kernels/base/counter_random.h"
#include "models/generation/sampling/candidate_filter.h"
#include "models/generation/sampling/logits_processors.h"
#include "models/generation/sampling/row_math.h"
#include "models/generation/sampling/sampler.h"

namespace longview::models {
namespace {

constexpr double kBanned = -std::numeric_limits<double>::infinity();

std::vector<double> Processed(const GenerationSettings& settings, std::vector<double> scores,
                              std::vector<int32_t> ids, int prompt = 1,
                              std::vector<int32_t> source = {}) {
  TokenHistory history({ids.begin(), ids.begin() + prompt}, static_cast<int>(scores.size()), true);
  for (size_t i = static_cast<size_t>(prompt); i < ids.size(); ++i) history.Append(ids[i]);
  LogitsProcessors(settings, source).Apply(history, scores);
  return scores;
}

std::vector<int32_t> Bans(const GenerationSettings& settings, std::vector<int32_t> ids,
                          int prompt = 1, std::vector<int32_t> source = {}) {
  const std::vector<double> scores =
      Processed(settings, std::vector<double>(10), ids, prompt, source);
  std::vector<int32_t> banned;
  for (size_t id = 0; id < scores.size(); ++id) {
    if (scores[id] == kBanned) banned.push_back(static_cast<int32_t>(id));
  }
  return banned;
}

using Ids = std::vector<int32_t>;

TEST(Processors, RepetitionCountsEveryIdOnce) {
  GenerationSettings settings;
  settings.repetition_penalty = 2;
  EXPECT_EQ(Processed(settings, {2, -2, 0.5, 0}, {0, 1, 1}), (std::vector<double>{1, -4, 0.5, 0}));
}

TEST(Processors, NgramsThatWouldRepeatAreBanned) {
  GenerationSettings settings;
  settings.no_repeat_ngram = 2;
  EXPECT_EQ(Bans(settings, {5, 7, 5}), Ids{7});
  settings.no_repeat_ngram = 3;
  EXPECT_EQ(Bans(settings, {2, 4, 5, 6, 4, 5}), Ids{6});
  EXPECT_EQ(Bans(settings, {2, 4}), Ids{});
  settings.no_repeat_ngram = 1;
  EXPECT_EQ(Bans(settings, {2, 4, 2}), (Ids{2, 4}));
}

TEST(Processors, NgramsOfTheSourceAreBanned) {
  GenerationSettings settings;
  settings.encoder_no_repeat_ngram = 2;
  EXPECT_EQ(Bans(settings, {1, 5}, 1, {3, 5, 8, 5, 9}), (Ids{8, 9}));
}

TEST(Processors, WordsAreBannedAfterTheirBeginning) {
  GenerationSettings settings;
  settings.bad_words = {{3}, {5, 6}, {1, 2, 7}};
  EXPECT_EQ(Bans(settings, {4}), Ids{3});
  EXPECT_EQ(Bans(settings, {4, 5}), (Ids{3, 6}));
  EXPECT_EQ(Bans(settings, {1, 2}), (Ids{3, 7}));
}

TEST(Processors, TheEndIsBannedUntilTheMinimum) {
  GenerationSettings settings;
  settings.eos = {2, 8};
  settings.min_length = 3;
  EXPECT_EQ(Bans(settings, {1, 5}), (Ids{2, 8}));
  EXPECT_EQ(Bans(settings, {1, 5, 5}), Ids{});
  settings.min_length = 0;
  settings.min_new_tokens = 2;
  EXPECT_EQ(Bans(settings, {1, 5, 4}, 2), (Ids{2, 8}));
  EXPECT_EQ(Bans(settings, {1, 5, 4, 4}, 2), Ids{});
}

TEST(Processors, ForcedTokensAreAlone) {
  GenerationSettings settings;
  settings.forced_bos = 4;
  settings.forced_eos = {2};
  settings.max_length = 4;
  EXPECT_EQ(Bans(settings, {1}), (Ids{0, 1, 2, 3, 5, 6, 7, 8, 9}));
  EXPECT_EQ(Bans(settings, {1, 4}), Ids{});
  EXPECT_EQ(Bans(settings, {1, 4, 4}), (Ids{0, 1, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(Processors, TheForcedEndWinsOverTheMinimum) {
  GenerationSettings settings;
  settings.eos = settings.forced_eos = {2};
  settings.min_length = 9;
  settings.max_length = 3;
  EXPECT_EQ(Processed(settings, {1, 1, 1}, {1, 1})[2], 0);
}

TEST(Processors, SuppressionAtTheBeginningComesAfterAForcedToken) {
  GenerationSettings settings;
  settings.suppress = {7};
  settings.begin_suppress = {5};
  EXPECT_EQ(Bans(settings, {1}), (Ids{5, 7}));
  EXPECT_EQ(Bans(settings, {1, 3}), Ids{7});
  settings.forced_bos = 4;
  EXPECT_EQ(Bans(settings, {1, 4}), (Ids{5, 7}));
}

TEST(Processors, DecayRaisesTheEnd) {
  GenerationSettings settings;
  settings.eos = {1};
  settings.decay = {2, 1.5};
  EXPECT_EQ(Processed(settings, {0, -4}, {0, 0, 0})[1], -4);
  EXPECT_DOUBLE_EQ(Processed(settings, {0, -4}, {0, 0, 0, 0})[1], -4 + 4 * 0.5);
  EXPECT_EQ(Processed(settings, {0, kBanned}, {0, 0, 0, 0})[1], kBanned);
}

TEST(Processors, BiasNeedsItsBeginning) {
  GenerationSettings settings;
  settings.sequence_bias = {{{3}, 1.5}, {{2, 4}, -2}};
  const std::vector<double> none(5);
  EXPECT_EQ(Processed(settings, none, {1}), (std::vector<double>{0, 0, 0, 1.5, 0}));
  EXPECT_EQ(Processed(settings, none, {2}), (std::vector<double>{0, 0, 0, 1.5, -2}));
}

TEST(Processors, InvalidValuesAreReplaced) {
  GenerationSettings settings;
  settings.remove_invalid = true;
  const double infinity = std::numeric_limits<double>::infinity();
  const auto scores = Processed(settings, {std::nan(""), infinity, -infinity, 2}, {0});
  EXPECT_EQ(scores[0], 0);
  EXPECT_TRUE(std::isfinite(scores[1]) && std::isfinite(scores[2]));
  EXPECT_EQ(scores[3], 2);
}

std::vector<int32_t> Kept(const GenerationSettings& settings, std::vector<double> scores,
                          int min_keep = 1) {
  CandidateFilter filter(settings, min_keep);
  std::vector<int32_t> ids;
  for (const Candidate& candidate : filter.Keep(scores)) ids.push_back(candidate.id);
  return ids;
}

std::vector<double> Logs(std::vector<double> probabilities) {
  for (double& p : probabilities) p = std::log(p);
  return probabilities;
}

TEST(Filter, TopKKeepsTies) {
  GenerationSettings settings;
  settings.top_k = 2;
  EXPECT_EQ(Kept(settings, {3, 2, 2, 1}), (Ids{0, 1, 2}));
}

TEST(Filter, TopPKeepsTheLeastThatHasTheMass) {
  GenerationSettings settings;
  const std::vector<double> scores = Logs({.5, .3, .15, .05});
  settings.top_p = .75;
  EXPECT_EQ(Kept(settings, scores), (Ids{0, 1}));
  settings.top_p = .85;
  EXPECT_EQ(Kept(settings, scores), (Ids{0, 1, 2}));
  settings.top_p = .3;
  EXPECT_EQ(Kept(settings, scores), Ids{0});
  EXPECT_EQ(Kept(settings, scores, 2), (Ids{0, 1}));
}

TEST(Filter, TopPOfEqualScoresTakesTheLowerIds) {
  GenerationSettings settings;
  settings.top_p = .5;
  EXPECT_EQ(Kept(settings, std::vector<double>(1000, 1.0)).back(), 499);
}

TEST(Filter, MinPIsRelativeToTheBest) {
  GenerationSettings settings;
  settings.min_p = .5;
  EXPECT_EQ(Kept(settings, Logs({.5, .3, .15, .05})), (Ids{0, 1}));
}

TEST(Filter, CutoffsKeepTheBest) {
  GenerationSettings settings;
  settings.epsilon_cutoff = .2;
  EXPECT_EQ(Kept(settings, Logs({.5, .3, .15, .05})), (Ids{0, 1}));
  settings.epsilon_cutoff = .9;
  EXPECT_EQ(Kept(settings, Logs({.5, .3, .15, .05})), Ids{0});
  settings.epsilon_cutoff = 0;
  settings.eta_cutoff = .01;  // min(.01, .1 exp(-entropy)) = .01: the entropy is 1.14.
  EXPECT_EQ(Kept(settings, Logs({.5, .3, .195, .005})), (Ids{0, 1, 2}));
}

TEST(Filter, TypicalKeepsWhatIsNearTheEntropy) {
  GenerationSettings settings;
  settings.typical_p = .25;
  // Entropy 1.14 nats, surprises .69, 1.20, 1.90, 3.00: the second is the most typical.
  EXPECT_EQ(Kept(settings, Logs({.5, .3, .15, .05})), Ids{1});
  settings.typical_p = .7;
  EXPECT_EQ(Kept(settings, Logs({.5, .3, .15, .05})), (Ids{0, 1}));
}

TEST(Sampler, DrawsByProbability) {
  GenerationSettings settings;
  settings.sample = true;
  settings.seed = 11;
  const LogitsProcessors processors(settings, {});
  Sampler sampler(settings, processors);
  const std::vector<float> logits = {std::log(.5F), std::log(.3F), std::log(.15F), std::log(.05F)};
  const TokenHistory history({0}, 4, false);
  std::array<int, 4> counts{};
  constexpr int kDraws = 20000;
  for (int sample = 0; sample < kDraws; ++sample) {
    ++counts[static_cast<size_t>(*sampler.Choose(logits, history, sample))];
  }
  const double expected[] = {.5, .3, .15, .05};
  for (size_t id = 0; id < 4; ++id) {
    EXPECT_NEAR(counts[id] / double{kDraws}, expected[id], 0.015) << id;
  }
}

TEST(Sampler, GreedyTakesTheLowestOfEqualIds) {
  GenerationSettings settings;
  const LogitsProcessors processors(settings, {});
  Sampler sampler(settings, processors);
  const std::vector<float> logits = {1, 3, 3, 2};
  EXPECT_EQ(*sampler.Choose(logits, TokenHistory({}, 4, false), 0), 1);
}

TEST(Sampler, SaysWhenNothingIsLeft) {
  GenerationSettings settings;
  settings.sample = true;
  settings.suppress = {0, 1};
  const LogitsProcessors processors(settings, {});
  Sampler sampler(settings, processors);
  const TokenHistory history({}, 2, false);
  const std::vector<float> logits = {1, 2};
  EXPECT_EQ(sampler.Choose(logits, history, 0).status().code(), absl::StatusCode::kInvalidArgument);
  const std::vector<float> broken = {std::nanf(""), 2};
  EXPECT_EQ(sampler.Choose(broken, history, 0).status().code(), absl::StatusCode::kInternal);
}

TEST(RowMath, PeakIsTheFirstLargest) {
  std::minstd_rand random(3);
  for (const size_t size : {1, 2, 15, 16, 17, 100, 257}) {
    std::vector<float> row(size);
    for (float& x : row) x = static_cast<float>(random() % 50) - 25;
    const auto want = std::max_element(row.begin(), row.end());
    const RowPeak peak = FindPeak(row);
    EXPECT_EQ(peak.id, want - row.begin());
    EXPECT_EQ(peak.value, *want);
    EXPECT_TRUE(peak.valid);
    row[random() % size] = std::nanf("");
    EXPECT_FALSE(FindPeak(row).valid);
  }
}

TEST(RowMath, ExponentialsAreExact) {
  std::vector<float> x, out(40000);
  for (int i = 0; i < 40000; ++i) x.push_back(-87.0F + 0.0022F * static_cast<float>(i));
  Exponentials(x, out);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(out[i] / std::exp(double{x[i]}), 1, 3e-7) << x[i];
  }
  const std::vector<float> low = {-88, -std::numeric_limits<float>::infinity()};
  Exponentials(low, std::span(out).first(2));
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(out[1], 0);
  double sum = 0;
  const std::vector<float> row = {1, 3, -2, 0.5, 2};
  for (const float value : row) sum += std::exp(double{value} - 3);
  EXPECT_NEAR(SumOfExponentials(row, 3), sum, 1e-6);
}

TEST(Filter, TopKOfManyIsThatOfASort) {
  std::minstd_rand random(5);
  GenerationSettings settings;
  for (int round = 0; round < 50; ++round) {
    std::vector<double> scores(3000);
    for (double& score : scores) score = static_cast<double>(random() % 700);
    settings.top_k = 1 + static_cast<int>(random() % 200);
    std::vector<double> sorted = scores;
    std::sort(sorted.rbegin(), sorted.rend());
    const double threshold = sorted[static_cast<size_t>(settings.top_k) - 1];
    std::vector<int32_t> want;
    for (size_t id = 0; id < scores.size(); ++id) {
      if (scores[id] >= threshold) want.push_back(static_cast<int32_t>(id));
    }
    EXPECT_EQ(Kept(settings, scores), want);
  }
}

TEST(Filter, TopPOfManyIsThatOfASort) {
  std::minstd_rand random(6);
  std::normal_distribution<double> normal(0, 3);
  GenerationSettings settings;
  for (const double top_p : {0.2, 0.7, 0.95, 0.999}) {
    std::vector<double> scores(5000);
    for (double& score : scores) score = normal(random);
    settings.top_p = top_p;
    std::vector<int32_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) { return scores[a] > scores[b]; });
    double total = 0, above = 0;
    for (const double score : scores) total += std::exp(score);
    size_t kept = 0;
    for (; kept < order.size() && above < top_p * total; ++kept) {
      above += std::exp(scores[static_cast<size_t>(order[kept])]);
    }
    EXPECT_NEAR(static_cast<double>(Kept(settings, scores).size()), static_cast<double>(kept), 1);
  }
}

// Known answers of the reference implementation (Random123, kat_vectors).
TEST(CounterRandom, IsPhilox) {
  EXPECT_EQ(kernels::Philox({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kAll = 0xffffffff;
  EXPECT_EQ(kernels::Philox({kAll, kAll, kAll, kAll}, {kAll, kAll}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

}  // namespace
}  // namespace longview::models
