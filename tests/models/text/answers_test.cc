// Entities as HuggingFace's pipeline forms them, answer spans, rankings.
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <random>
#include <utility>

#include "models/text/entities.h"
#include "models/text/scores.h"

namespace longview::models {
namespace {

const std::vector<std::string> kLabels = {"O", "B-PER", "I-PER", "B-LOC", "I-LOC"};

// Tokens of a text with the label each of them is sure of; `second` gets what the others lack.
struct Tagged {
  int start, end;
  int label;
  float logit = 10;
};

std::vector<EntitySpan> Find(const std::string& text, const std::vector<Tagged>& tagged,
                             Aggregation aggregation) {
  std::vector<LabelledToken> tokens;
  std::vector<float> logits(tagged.size() * kLabels.size());
  for (size_t i = 0; i < tagged.size(); ++i) {
    tokens.push_back({static_cast<int>(i), tagged[i].start, tagged[i].end});
    logits[i * kLabels.size() + tagged[i].label] = tagged[i].logit;
  }
  return FindEntities(text, tokens, logits, kLabels, aggregation);
}

std::vector<std::string> Names(const std::vector<EntitySpan>& entities) {
  std::vector<std::string> names;
  for (const EntitySpan& entity : entities) names.push_back(entity.label + ":" + entity.text);
  return names;
}

using Strings = std::vector<std::string>;

TEST(EntitiesTest, NoneKeepsTokensAndPrefixes) {
  EXPECT_EQ(Names(Find("Ann Lee in Rome", {{0, 3, 1}, {4, 7, 2}, {8, 10, 0}, {11, 15, 3}},
                       Aggregation::kNone)),
            Strings({"B-PER:Ann", "I-PER:Lee", "B-LOC:Rome"}));
}

TEST(EntitiesTest, SimpleJoinsNeighboursOfOneType) {
  const auto entities = Find("Ann Lee in Rome", {{0, 3, 1}, {4, 7, 2}, {8, 10, 0}, {11, 15, 3}},
                             Aggregation::kSimple);
  EXPECT_EQ(Names(entities), Strings({"PER:Ann Lee", "LOC:Rome"}));
  EXPECT_EQ(entities[0].start, 0);
  EXPECT_EQ(entities[0].end, 7);
  const float sure = std::exp(10.0f) / (std::exp(10.0f) + 4);
  EXPECT_NEAR(entities[0].score, sure, 1e-6);
}

TEST(EntitiesTest, ABeginsANewEntityAndSoDoesAnotherType) {
  EXPECT_EQ(Names(Find("Ann Bob Rome", {{0, 3, 1}, {4, 7, 1}, {8, 12, 4}}, Aggregation::kSimple)),
            Strings({"PER:Ann", "PER:Bob", "LOC:Rome"}));
  // An inside tag without a beginning counts all the same.
  EXPECT_EQ(Names(Find("Ann Lee", {{0, 3, 2}, {4, 7, 2}}, Aggregation::kSimple)),
            Strings({"PER:Ann Lee"}));
}

// "Johnson" in two tokens, the first weakly a place, the second strongly a person.
const std::vector<Tagged> kSplitWord = {{0, 4, 3, 1.5f}, {4, 7, 2, 6.0f}, {8, 12, 0}};

TEST(EntitiesTest, WordsTakeOneLabel) {
  const std::string text = "Johnson sang";
  EXPECT_EQ(Names(Find(text, kSplitWord, Aggregation::kSimple)), Strings({"LOC:John", "PER:son"}));
  EXPECT_EQ(Names(Find(text, kSplitWord, Aggregation::kFirst)), Strings({"LOC:Johnson"}));
  EXPECT_EQ(Names(Find(text, kSplitWord, Aggregation::kMax)), Strings({"PER:Johnson"}));
  EXPECT_EQ(Names(Find(text, kSplitWord, Aggregation::kAverage)), Strings({"PER:Johnson"}));
}

TEST(EntitiesTest, ASpellingThatIsLongerThanItsTextGoesOnWithTheWord) {
  // "a.b" in three tokens, none with a space before it; then "##b" goes on with "." instead.
  std::vector<LabelledToken> tokens = {
      {0, 0, 1, false, 1}, {1, 1, 2, false, 1}, {2, 2, 3, false, 1}};
  std::vector<float> logits(3 * kLabels.size());
  for (size_t i = 0; i < 3; ++i) logits[i * kLabels.size() + 1] = 10;
  const auto names = [&] {
    return Names(FindEntities("a.b", tokens, logits, kLabels, Aggregation::kFirst));
  };
  EXPECT_EQ(names(), Strings({"PER:a", "PER:.", "PER:b"}));
  tokens[2].spelling = 3;
  EXPECT_EQ(names(), Strings({"PER:a", "PER:.b"}));
  tokens[2].unknown = true;
  EXPECT_EQ(names(), Strings({"PER:a", "PER:.", "PER:b"}));
}

TEST(EntitiesTest, PositionsAreCodePoints) {
  const auto entities =
      Find("Zoë à Köln", {{0, 3, 1}, {4, 5, 0}, {6, 10, 3}}, Aggregation::kSimple);
  EXPECT_EQ(Names(entities), Strings({"PER:Zoë", "LOC:Köln"}));
}

TEST(EntitiesTest, Names) {
  EXPECT_EQ(ParseAggregation(""), Aggregation::kSimple);
  EXPECT_EQ(ParseAggregation("max"), Aggregation::kMax);
  EXPECT_EQ(ParseAggregation("median"), std::nullopt);
}

TEST(AnswerSpanTest, IsTheBestOfAllAllowedSpans) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 200; ++round) {
    const int tokens = 1 + static_cast<int>(random() % 40);
    std::vector<float> starts(tokens), ends(tokens);
    for (float& v : starts) v = normal(random);
    for (float& v : ends) v = normal(random);
    const int begin = static_cast<int>(random() % tokens);
    const int end = begin + 1 + static_cast<int>(random() % (tokens - begin));
    const int longest = 1 + static_cast<int>(random() % 8);
    std::vector<std::pair<float, std::pair<int, int>>> all;
    double start_sum = 0, end_sum = 0;
    for (int i = begin; i < end; ++i) {
      start_sum += std::exp(double{starts[i]});
      end_sum += std::exp(double{ends[i]});
      for (int j = i; j < std::min(end, i + longest); ++j) {
        all.push_back({-(starts[i] + ends[j]), {i, j}});
      }
    }
    std::sort(all.begin(), all.end());
    const auto best = BestSpans(starts, ends, begin, end, longest, 5);
    ASSERT_EQ(best.size(), std::min<size_t>(5, all.size()));
    for (size_t k = 0; k < best.size(); ++k) {
      const auto [i, j] = all[k].second;
      EXPECT_EQ(best[k].first, i);
      EXPECT_EQ(best[k].last, j);
      EXPECT_NEAR(best[k].probability,
                  std::exp(double{starts[i]}) / start_sum * std::exp(double{ends[j]}) / end_sum,
                  1e-6);
    }
  }
  EXPECT_TRUE(BestSpans({}, {}, 0, 0, 30, 1).empty());
}

// Few values, so that many spans are equal; as many answers as there are spans, and more.
TEST(AnswerSpanTest, EqualSpansComeInTheOrderOfTheirTokens) {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    const int tokens = 1 + static_cast<int>(random() % 30);
    const int longest = 1 + static_cast<int>(random() % 40);
    std::vector<float> starts(tokens), ends(tokens);
    // Ends that differ by 1e-8 give equal sums with every start but 0.
    for (float& v : starts) v = static_cast<float>(random() % 3);
    for (float& v : ends) v = 1e-8f * static_cast<float>(random() % 3);
    std::vector<std::pair<float, std::pair<int, int>>> all;
    for (int i = 0; i < tokens; ++i) {
      for (int j = i; j < std::min(tokens, i + longest); ++j) {
        all.push_back({-(starts[i] + ends[j]), {i, j}});
      }
    }
    std::sort(all.begin(), all.end());
    for (const size_t count : {size_t{1}, size_t{7}, all.size(), all.size() + 5}) {
      const auto best = BestSpans(starts, ends, 0, tokens, longest, static_cast<int>(count));
      ASSERT_EQ(best.size(), std::min(count, all.size()));
      for (size_t k = 0; k < best.size(); ++k) {
        EXPECT_EQ(std::pair(best[k].first, best[k].last), all[k].second);
        EXPECT_EQ(best[k].score, -all[k].first);
      }
    }
  }
}

// 5e11 spans: nobody looks at all of them.
TEST(AnswerSpanTest, AnyLengthOfALongDocument) {
  constexpr int kTokens = 1 << 20;
  std::vector<float> rising(kTokens), level(kTokens);
  for (int i = 0; i < kTokens; ++i) rising[i] = static_cast<float>(i);
  const auto last = BestSpans(rising, rising, 0, kTokens, kTokens, 2);
  ASSERT_EQ(last.size(), 2u);
  EXPECT_EQ(last[0].first, kTokens - 1);
  EXPECT_EQ(last[1].first, kTokens - 2);
  const auto equal = BestSpans(level, level, 0, kTokens, kTokens, 3);
  ASSERT_EQ(equal.size(), 3u);
  EXPECT_EQ(equal[2].first, 0);
  EXPECT_EQ(equal[2].last, 2);
  EXPECT_EQ(BestSpans(level, rising, 0, kTokens, INT_MAX, 1)[0].last, kTokens - 1);
}

TEST(ScoresTest, ByProblemType) {
  const std::vector<float> logits = {1.0f, 3.0f, -1.0f};
  const std::vector<std::string> names = {"a", "b", "c"};
  const auto single = RankLabels(logits, names, ProblemType::kSingleLabel, 0);
  ASSERT_EQ(single.size(), 3u);
  EXPECT_EQ(single[0].name, "b");
  EXPECT_NEAR(single[0].score, std::exp(3.0) / (std::exp(1.0) + std::exp(3.0) + std::exp(-1.0)),
              1e-6);
  const auto multi = RankLabels(logits, names, ProblemType::kMultiLabel, 2);
  ASSERT_EQ(multi.size(), 2u);
  EXPECT_NEAR(multi[1].score, 1 / (1 + std::exp(-1.0)), 1e-6);
  const auto raw = RankLabels(logits, names, ProblemType::kRegression, 0);
  EXPECT_EQ(raw[0].name, "a");
  EXPECT_EQ(raw[2].score, -1.0f);
}

TEST(ScoresTest, TopTokensAndMeans) {
  const auto top = TopTokens(std::vector<float>{0, 2, 2, -5}, 3);
  ASSERT_EQ(top.size(), 3u);
  EXPECT_EQ(top[0].id, 1);
  EXPECT_EQ(top[1].id, 2);
  EXPECT_NEAR(top[0].logprob, 2 - std::log(1 + 2 * std::exp(2.0) + std::exp(-5.0)), 1e-6);
  const std::vector<float> rows = {1, 2, 100, 200, 3, 4};
  const std::vector<uint8_t> roles = {1, 0, 2};
  EXPECT_EQ(MeanRows(rows.data(), roles, 2), std::vector<float>({2, 3}));
  std::vector<float> vector = {3, 4};
  NormalizeVector(vector);
  EXPECT_FLOAT_EQ(vector[0], 0.6f);
  std::vector<float> zero = {0, 0};
  NormalizeVector(zero);
  EXPECT_EQ(zero[0], 0);
}

}  // namespace
}  // namespace longview::models
