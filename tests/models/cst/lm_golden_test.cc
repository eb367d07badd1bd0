// Every autoregressive case of golden/cst: logits of whole texts, step by step from every prompt
// length, greedy continuations; fp32 within the case's tolerance, the error of bf16 printed beside
// it and held to a loose bound.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "tests/models/cst/cst_case.h"
#include "tests/models/golden/golden_case.h"

namespace longview::models {
namespace {

constexpr double kBf16Bound = 0.6;  // Logits have a standard deviation of 2.

class CstLmGolden : public ::testing::TestWithParam<std::string> {
 protected:
  std::vector<int32_t> Ids(int item) const {
    const std::vector<int64_t> wide = golden_.Integers("input_ids." + std::to_string(item));
    return {wide.begin(), wide.end()};
  }
  int items() const { return golden_.items(); }
  // An adaptive softmax gives log-probabilities.
  std::string Key() const { return golden_.Expects("logprobs.0") ? "logprobs" : "logits"; }

  double Error(int item, const std::vector<float>& all) const {
    return golden_.Difference(all, golden_.Expected(Key() + "." + std::to_string(item)), item);
  }

  const GoldenCase golden_{GetParam(), "cst"};
};

TEST_P(CstLmGolden, WholeTexts) {
  ASSERT_GT(items(), 0);
  for (const std::string dtype : {"fp32", "bf16"}) {
    const auto loaded = golden_.Load(dtype);
    if (loaded->info().dtype != dtype) continue;
    CstCase model(golden_.directory(), dtype);
    double largest = 0;
    for (int i = 0; i < items(); ++i) {
      const std::vector<float> all = model.Read(*model.New(), Ids(i));
      largest = std::max(largest, Error(i, all));
    }
    EXPECT_LE(largest, dtype == "fp32" ? golden_.tolerance(Key()) : kBf16Bound);
    std::printf("%-24s %s largest error %.2e\n", GetParam().c_str(), dtype.c_str(), largest);
  }
}

// Reading a beginning at once and the rest token by token is reading the whole.
TEST_P(CstLmGolden, StepByStepFromEveryPromptLength) {
  CstCase model(golden_.directory(), "fp32");
  std::vector<int32_t> text = Ids(0);
  if (text.size() > 64) text.resize(64);
  const std::vector<float> whole = model.Read(*model.New(), text);
  const auto vocab = static_cast<size_t>(model.config().vocab);
  for (size_t prompt = 0; prompt < text.size(); ++prompt) {
    const auto sequence = model.New();
    const std::span<const int32_t> ids(text);
    if (prompt > 0) model.Read(*sequence, ids.first(prompt), WantedLogits::kNone);
    const std::vector<float> steps = model.Step(*sequence, ids.subspan(prompt));
    const std::vector<double> want(whole.begin() + static_cast<ptrdiff_t>(prompt * vocab),
                                   whole.end());
    EXPECT_LE(LargestDifference(steps, want), 2e-5) << "prompt of " << prompt;
  }
}

TEST_P(CstLmGolden, GreedyContinuations) {
  CstCase model(golden_.directory(), "fp32");
  for (int i = 0; i < items(); ++i) {
    const std::string name = "greedy.tokens." + std::to_string(i);
    if (!golden_.Expects(name)) continue;
    const auto sequence = model.New();
    std::vector<float> logits = model.Read(*sequence, Ids(i), WantedLogits::kLast);
    for (const double want : golden_.ExpectedExactly(name)) {
      const int32_t token = Greedy(logits);
      ASSERT_EQ(token, want) << name;
      logits = model.Step(*sequence, {&token, 1});
    }
  }
}

// A token's logits depend on no later one.
TEST_P(CstLmGolden, LaterTokensChangeNothing) {
  CstCase model(golden_.directory(), "fp32");
  std::vector<int32_t> text = Ids(0);
  if (text.size() > 40) text.resize(40);
  const std::vector<float> want = model.Read(*model.New(), text);
  const auto vocab = static_cast<ptrdiff_t>(model.config().vocab);
  for (size_t t = 1; t < text.size(); ++t) {
    std::vector<int32_t> other = text;
    other[t] = (other[t] + 1) % model.config().vocab;
    const std::vector<float> got = model.Read(*model.New(), other);
    const auto kept = static_cast<ptrdiff_t>(t) * vocab;
    ASSERT_TRUE(std::equal(want.begin(), want.begin() + kept, got.begin())) << t;
    EXPECT_FALSE(std::equal(want.begin() + kept, want.end(), got.begin() + kept)) << t;
  }
}

std::vector<std::string> CausalCases() {
  std::vector<std::string> names = GoldenCase::Names("cst");
  std::erase_if(names, [](const std::string& name) { return !name.starts_with("ar_"); });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Cases, CstLmGolden, ::testing::ValuesIn(CausalCases()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace longview::models
