// Equal bits: however a prompt is cut, whoever shares the steps, whether a state was made afresh or
// forked.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <tuple>

#include "tests/models/golden/golden_case.h"
#include "tests/models/luna_decoder/luna_case.h"
#include "tests/support/cpu_types.h"

namespace longview::models {
namespace {

// (case, dtype)
class LunaDecoderBatchInvariance
    : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  LunaDecoderBatchInvariance()
      : golden_(std::get<0>(GetParam()), "luna"),
        model_(golden_.directory(), std::get<1>(GetParam())) {}

  const GoldenCase golden_;
  LunaCase model_;
};

TEST_P(LunaDecoderBatchInvariance, PrefillCutAnywhereGivesTheSameBits) {
  ExpectCutsChangeNoBit(model_, 50, {1, 7, 8, 16, 33});
}

TEST_P(LunaDecoderBatchInvariance, AForkReadsLikeAFreshSequence) {
  for (const int shared : {0, 1, 20}) ExpectForkReadsLikeFresh(model_, shared, 17, 12);
}

TEST_P(LunaDecoderBatchInvariance, AloneAndInRandomSteps) {
  constexpr int kSequences = 9;
  std::mt19937 random(6);
  std::vector<std::vector<int32_t>> texts;
  std::vector<std::vector<float>> want, got(kSequences);
  std::vector<std::unique_ptr<DecoderSequence>> sequences;
  std::vector<size_t> read(kSequences);
  for (int i = 0; i < kSequences; ++i) {
    texts.push_back(model_.Text(1 + static_cast<int>(random() % 60), static_cast<uint32_t>(i)));
    want.push_back(model_.Read(*model_.New(), texts.back()));
    sequences.push_back(model_.New());
  }
  while (true) {
    std::vector<DecoderFeed> feeds;
    std::vector<int> members;
    bool left = false;
    for (int i = 0; i < kSequences; ++i) {
      const size_t rest = texts[i].size() - read[i];
      left = left || rest > 0;
      if (rest == 0 || random() % 3 == 0) continue;
      const size_t count = std::min<size_t>(rest, 1 + random() % 9);
      feeds.push_back({sequences[i].get(), std::span(texts[i]).subspan(read[i], count),
                       count == 1 ? DecoderPhase::kDecode : DecoderPhase::kPrefill,
                       WantedLogits::kAll});
      read[i] += count;
      members.push_back(i);
    }
    if (!left) break;
    const std::vector<std::vector<float>> logits = RunStep(model_.decoder(), feeds);
    for (size_t m = 0; m < members.size(); ++m) {
      std::vector<float>& rows = got[members[m]];
      rows.insert(rows.end(), logits[m].begin(), logits[m].end());
    }
  }
  for (int i = 0; i < kSequences; ++i) EXPECT_EQ(got[i], want[i]) << "sequence " << i;
}

// Wanted rows decide which rows of the last layer are computed, and no bit of them.
TEST_P(LunaDecoderBatchInvariance, WantedRowsHaveTheBitsOfAllRows) {
  const std::vector<int32_t> text = model_.Text(30, 7);
  const std::vector<float> all = model_.Read(*model_.New(), text);
  const std::vector<float> last = model_.Read(*model_.New(), text, WantedLogits::kLast);
  EXPECT_EQ(last, std::vector<float>(all.end() - model_.config().vocab, all.end()));
  EXPECT_TRUE(model_.Read(*model_.New(), text, WantedLogits::kNone).empty());
}

TEST_P(LunaDecoderBatchInvariance, StatesAreOfOneSizeAndGoWithTheirSequences) {
  EXPECT_EQ(model_.decoder().cache().used, 0);
  const auto sequence = model_.New();
  model_.Read(*sequence, model_.Text(3, 8), WantedLogits::kNone);
  const double one = model_.decoder().cache().used;
  EXPECT_EQ(one, model_.decoder().costs().StateBytes(0, 3, 1));
  model_.Read(*sequence, model_.Text(40, 9), WantedLogits::kNone);
  EXPECT_EQ(model_.decoder().cache().used, one);
  {
    const auto fork = sequence->Fork();
    EXPECT_EQ(model_.decoder().cache().used, one) << "shared until one of them reads on";
    model_.Read(*fork, model_.Text(2, 10), WantedLogits::kNone);
    EXPECT_EQ(model_.decoder().cache().used, 2 * one);
  }
  EXPECT_EQ(model_.decoder().cache().used, one);
}

INSTANTIATE_TEST_SUITE_P(Cases, LunaDecoderBatchInvariance,
                         testing::Combine(testing::Values("causal_tied", "causal_untied_prenorm"),
                                          testing::ValuesIn(CpuTypeNames())),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::get<1>(info.param);
                         });

TEST(LunaDecoderStates, WithoutMemoryAStepFailsAndSaysSo) {
  const GoldenCase golden("causal_tied", "luna");
  LunaCase small(golden.directory(), "fp32", 1);
  const std::vector<int32_t> text = {4, 5, 6};
  // More than what steps have beside the cache's bytes.
  std::vector<std::unique_ptr<DecoderSequence>> sequences;
  std::vector<DecoderFeed> feeds;
  for (int i = 0; i < 400; ++i) {
    sequences.push_back(small.New());
    feeds.push_back({sequences.back().get(), text});
  }
  const auto step = small.decoder().Begin(feeds);
  EXPECT_FALSE(step->Advance());
  EXPECT_TRUE(absl::IsResourceExhausted(step->status())) << step->status();
}

}  // namespace
}  // namespace longview::models
