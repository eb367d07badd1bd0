// Every model case of golden/transformer_ls_lm: logits of whole texts, step by step from every
// prompt length given, greedy continuations, forks; fp32 within the case's tolerance, the error of
// bf16 printed beside it and held to a loose bound. Cache contents: cache_golden_test.cc.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "models/dense/compute_choice.h"
#include "tests/models/longformer/golden_case.h"
#include "tests/models/transformer_ls/ls_case.h"

namespace longview::models {
namespace {

constexpr double kBf16Bound = 0.6;  // Logits have a standard deviation of 2.

class LsGolden : public testing::TestWithParam<std::string> {
 protected:
  LsGolden() : golden_(GetParam(), "transformer_ls_lm") {}

  std::vector<int32_t> Ids(const std::string& name) const {
    const std::vector<int64_t> wide = golden_.Integers(name);
    return {wide.begin(), wide.end()};
  }

  void Compare(std::span<const float> got, const std::string& name) {
    double error = LargestDifference(got, golden_.ExpectedExactly(name));
    EXPECT_LE(error, limit_) << name;
    if (golden_.Expects(name + ".f64")) {
      // The last rows only.
      const std::vector<double> exact = golden_.Expected(name);
      ASSERT_LE(exact.size(), got.size());
      error = LargestDifference(got.subspan(got.size() - exact.size()), exact);
      EXPECT_LE(error, limit_) << name << ".f64";
    }
    largest_ = std::max(largest_, error);
    ++compared_;
  }

  void WholeTexts(LsCase& model) {
    for (int i = 0; golden_.HasInput("input_ids." + std::to_string(i)); ++i) {
      const std::string name = "logits." + std::to_string(i);
      if (!golden_.Expects(name)) continue;
      const auto sequence = model.New();
      const std::vector<float> all = model.Read(*sequence, Ids("input_ids." + std::to_string(i)));
      const std::string positions = "positions." + std::to_string(i);
      if (!golden_.Expects(positions)) {
        Compare(all, name);
        continue;
      }
      // Long texts: some positions only.
      std::vector<float> some;
      for (const double position : golden_.Expected(positions)) {
        const auto row = all.begin() + static_cast<int64_t>(position) * model.config().vocab;
        some.insert(some.end(), row, row + model.config().vocab);
      }
      Compare(some, name);
    }
  }

  void StepByStep(LsCase& model) {
    const std::vector<int32_t> ids = Ids("input_ids.0");
    const std::span<const int32_t> text(ids);
    for (int prompt = 0; prompt < static_cast<int>(ids.size()); ++prompt) {
      const std::string name = "step_logits.p" + std::to_string(prompt);
      if (!golden_.Expects(name)) continue;
      const auto sequence = model.New();
      if (prompt > 0) model.Read(*sequence, text.first(prompt), WantedLogits::kNone);
      const auto steps = golden_.ExpectedExactly(name).size() / model.config().vocab;
      Compare(model.Step(*sequence, text.subspan(prompt, steps)), name);
    }
  }

  void Continuations(LsCase& model) {
    for (int i = 0; golden_.HasInput("prompt." + std::to_string(i)); ++i) {
      const std::vector<double> want = golden_.Expected("greedy." + std::to_string(i));
      const auto sequence = model.New();
      const std::vector<int32_t> prompt = Ids("prompt." + std::to_string(i));
      std::vector<float> logits = model.Read(*sequence, prompt, WantedLogits::kLast);
      for (size_t t = 0; t < want.size(); ++t) {
        const int32_t next = Greedy(logits);
        ASSERT_EQ(next, want[t]) << "greedy." << i << ", token " << t;
        logits = model.Step(*sequence, {&next, 1});
      }
    }
  }

  void Forks(LsCase& model) {
    if (!golden_.HasInput("fork.prompt")) return;
    const std::vector<int32_t> prompt = Ids("fork.prompt"), text = Ids("input_ids.0");
    const auto original = model.New();
    model.Read(*original, prompt, WantedLogits::kNone);
    const auto a = original->Fork(), b = original->Fork();
    Compare(model.Step(*a, Ids("fork.a")), "fork.a.logits");
    Compare(model.Step(*b, Ids("fork.b")), "fork.b.logits");
    const auto rows = golden_.ExpectedExactly("fork.original.logits").size() / model.config().vocab;
    Compare(model.Step(*original, std::span(text).subspan(prompt.size(), rows)),
            "fork.original.logits");
  }

  GoldenCase golden_;
  double limit_ = 0;
  double largest_ = 0;
  int compared_ = 0;
};

TEST_P(LsGolden, Fp32) {
  LsCase model(golden_.directory(), "fp32");
  limit_ = golden_.tolerance("logits");
  WholeTexts(model);
  StepByStep(model);
  Forks(model);
  Continuations(model);
  EXPECT_GT(compared_, 0);
  std::printf("%-32s fp32 largest error %.2e\n", GetParam().c_str(), largest_);
}

TEST_P(LsGolden, Bf16) {
  if (!ChooseCompute("bf16", "", "").value().notes.empty()) GTEST_SKIP() << "no bf16 here";
  LsCase model(golden_.directory(), "bf16");
  limit_ = kBf16Bound;
  WholeTexts(model);
  StepByStep(model);
  Forks(model);
  std::printf("%-32s bf16 largest error %.2e\n", GetParam().c_str(), largest_);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, LsGolden,
    testing::ValuesIn(GoldenCase::Present(
        "transformer_ls_lm",
        {"paper_dh16_r1_l4_w8", "paper_dh32_r2_l16_w64", "paper_dh64_r4_l16_w24", "paper_clamps",
         "paper_fp16_file", "paper_long_3300", "paper_postln_relu_bias_l4_w10",
         "blocks_B16_M512_w16", "blocks_B32_M32_w32_l16", "blocks_B48_M16_w16_r2",
         "blocks_B8_M64_w16", "blocks_enwik8_dict", "blocks_nozero_B16_M32",
         "blocks_postln_bias_B8_M16", "blocks_single_M24_w24_l8"})),
    [](const auto& info) { return info.param; });

}  // namespace
}  // namespace longview::models
