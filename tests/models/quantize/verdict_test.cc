// Answers of two forms of a model to what is said of them.
#include "models/quantize/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "models/quantize/report.h"

namespace longview::models {
namespace {

using ::testing::HasSubstr;

HostTensor Tensor(std::vector<int64_t> shape, const std::vector<float>& values) {
  HostTensor tensor{
      .name = "t", .type = TensorType::kFp32, .shape = std::move(shape), .data = {}, .strings = {}};
  tensor.data.resize(values.size() * sizeof(float));
  std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
  return tensor;
}

Probe Of(Comparison comparison) {
  Probe probe;
  probe.comparison = comparison;
  return probe;
}

Outcome From(Comparison comparison, std::vector<int64_t> shape, const std::vector<float>& values) {
  Answer answer;
  answer.tensors = {Tensor(std::move(shape), values)};
  return *OutcomeOf(Of(comparison), answer);
}

TEST(OutcomeTest, ClassesAndLabelsAreTheBestColumns) {
  EXPECT_EQ(From(Comparison::kTop1, {3}, {1, 5, 2}).choices, std::vector<int64_t>({1}));
  EXPECT_EQ(From(Comparison::kLabels, {2, 2}, {1, 5, 2, 0}).choices, std::vector<int64_t>({1, 0}));
}

TEST(OutcomeTest, ATextIsScoredBehindItsFirstToken) {
  Answer answer;
  answer.prompt.emplace();
  answer.prompt->logprobs = {{7, std::numeric_limits<float>::quiet_NaN(), "a"},
                             {8, -std::log(2.0F), "bc"},
                             {9, -std::log(8.0F), "d"}};
  const Outcome outcome = *OutcomeOf(Of(Comparison::kBitsPerByte), answer);
  EXPECT_NEAR(outcome.bits, 4, 1e-6);
  EXPECT_EQ(outcome.scored, 3);
}

TEST(OutcomeTest, AnOutputIsScoredByTheRowsBeforeItsTokens) {
  Probe probe = Of(Comparison::kBitsPerToken);
  probe.request.decoder_tokens.emplace().ids = {1, 0};
  Answer answer;
  // A start and two tokens; the last row is about what would come next.
  answer.tensors = {Tensor({3, 2}, {0, 0, std::log(3.0F), 0, 50, -50})};
  const Outcome outcome = *OutcomeOf(probe, answer);
  EXPECT_NEAR(outcome.bits, 1 + std::log2(4.0 / 3), 1e-6);
  EXPECT_EQ(outcome.scored, 2);
}

TEST(OutcomeTest, WhatIsNoNumberIsAnError) {
  Answer answer;
  answer.tensors = {Tensor({1}, {std::numeric_limits<float>::infinity()})};
  EXPECT_FALSE(OutcomeOf(Of(Comparison::kTop1), answer).ok());
}

Outcome Choosing(std::vector<int64_t> choices) {
  Outcome outcome;
  outcome.choices = std::move(choices);
  return outcome;
}

TEST(VerdictTest, OneOfTwoHundredMayDiffer) {
  const std::vector<Probe> probes(200, Of(Comparison::kTop1));
  const std::vector<Outcome> exact(200, Choosing({3}));
  std::vector<Outcome> near = exact;
  near[7].choices = {4};
  std::vector<Metric> metrics = Compare(probes, exact, near, {});
  ASSERT_EQ(metrics.size(), 1u);
  EXPECT_EQ(metrics[0].value, 0.995);
  EXPECT_EQ(metrics[0].count, 200u);
  EXPECT_TRUE(AllHold(metrics));
  near[8].choices = {4};
  EXPECT_FALSE(AllHold(Compare(probes, exact, near, {})));
}

TEST(VerdictTest, BothEndsOfASpanCount) {
  const std::vector<Probe> probes(2, Of(Comparison::kSpan));
  const auto metrics = Compare(probes, {Choosing({1, 4}), Choosing({2, 3})},
                               {Choosing({1, 5}), Choosing({2, 3})}, {});
  EXPECT_EQ(metrics[0].value, 0.5);
}

TEST(VerdictTest, TheWorstLabelIsNamed) {
  const std::vector<Probe> probes = {Of(Comparison::kLabels)};
  std::vector<int64_t> labels(400, 1);
  labels.resize(1000, 0);
  std::vector<int64_t> off = labels;
  off[0] = off[1] = off[2] = 0;
  const auto metrics = Compare(probes, {Choosing(labels)}, {Choosing(off)}, {"O", "B-ORG"});
  EXPECT_EQ(metrics[0].of, "B-ORG");
  EXPECT_NEAR(metrics[0].value, 0.9925, 1e-12);
  EXPECT_FALSE(metrics[0].Holds());
}

TEST(VerdictTest, BitsMayGrowByHalfAPercent) {
  const std::vector<Probe> probes(2, Of(Comparison::kBitsPerByte));
  Outcome exact, more;
  exact.bits = 100;
  more.bits = 100.4;
  EXPECT_TRUE(AllHold(Compare(probes, {exact, exact}, {more, more}, {})));
  more.bits = 100.6;
  EXPECT_FALSE(AllHold(Compare(probes, {exact, exact}, {more, more}, {})));
  more.bits = 90;
  EXPECT_TRUE(AllHold(Compare(probes, {exact, exact}, {more, more}, {})));
}

TEST(VerdictTest, RankingsAreOfEachQuery) {
  std::vector<Probe> probes(4, Of(Comparison::kRanking));
  probes[2].query = probes[3].query = 1;
  std::vector<Outcome> exact(4), near(4);
  exact[0].score = near[0].score = exact[3].score = 1;
  near[2].score = 1;  // The second query's order is turned round.
  const auto metrics = Compare(probes, exact, near, {});
  EXPECT_NEAR(metrics[0].value, (1 + 1 / std::log2(3)) / 2, 1e-12);
  EXPECT_EQ(metrics[0].count, 2u);
}

TEST(VerdictTest, EveryKindOfProbeHasItsMetric) {
  const std::vector<Probe> probes = {Of(Comparison::kMaskTop1), Of(Comparison::kCosine)};
  Outcome vector;
  vector.vectors = {1, 0, 0, 1};
  vector.width = 2;
  Outcome other = vector;
  other.vectors = {1, 0, 1, 1};
  const auto metrics = Compare(probes, {Choosing({5}), vector}, {Choosing({5}), other}, {});
  ASSERT_EQ(metrics.size(), 2u);
  EXPECT_TRUE(metrics[0].Holds());
  EXPECT_NEAR(metrics[1].value, std::sqrt(0.5), 1e-6);
  EXPECT_FALSE(metrics[1].Holds());
}

TEST(ReportTest, SaysWhatFailsAndWhatStays) {
  const Metric bad = {.name = "top-1 agreement", .value = 0.9, .bound = 0.995, .count = 200};
  Metric good = bad;
  good.value = 1;
  const QuantizeFindings findings = {.model = "bert, text-classification",
                                     .inputs = 200,
                                     .notes = {"3 left out"},
                                     .fp32 = {.metrics = {}, .seconds = 0.02, .bytes = 40e6},
                                     .bf16 = std::nullopt,
                                     .int8 = {.metrics = {bad}, .seconds = 0.01, .bytes = 10e6},
                                     .chosen = Trial{{good}, 0.011, 11e6},
                                     .beside = "fp32",
                                     .linears = 24,
                                     .kept = {{"layer.3.out", 0.5}}};
  const std::string text = ReportText(findings);
  for (const char* part :
       {"bert, text-classification, 200 inputs\n",
        "top-1 agreement  200  >= 99.50 %  90.00 % (fails)  100.00 %",
        "weights           40.0 MB  10.0 MB  11.0 MB\n", "1 of 24 linears stay fp32:\n",
        "  layer.3.out  noise 50.0 % of its products\n", "note: 3 left out\n"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

}  // namespace
}  // namespace longview::models
