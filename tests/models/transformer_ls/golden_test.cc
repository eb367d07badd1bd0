// Every model case of golden/transformer_ls_lm: logits of whole texts, step by step from every
// prompt length given, greedy continuations, forks; fp32 within the case's tolerance, the error of
// bf16 printed beside it and held to a loose bound. Cache contents: cache_golden_test.cc.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "models/dense/compute_choice.h"
#include "tests/models/golden/golden_case.h"
#include "tests/models/transformer_ls/golden_checks.h"
#include "tests/models/transformer_ls/golden_names.h"
#include "tests/models/transformer_ls/ls_case.h"

namespace longview::models {
namespace {

constexpr double kBf16Bound = 0.6;  // Logits have a standard deviation of 2.

class LsGolden : public testing::TestWithParam<std::string> {
 protected:
  LsGolden() : golden_(GetParam(), "transformer_ls_lm") {}

  const GoldenCase golden_;
};

TEST_P(LsGolden, Fp32) {
  LsCase model(golden_.directory(), "fp32");
  LsGoldenChecks checks(golden_, golden_.tolerance("logits"));
  checks.WholeTexts(model);
  checks.StepByStep(model);
  checks.Forks(model);
  checks.Continuations(model);
  EXPECT_GT(checks.compared(), 0);
  std::printf("%-32s fp32 largest error %.2e\n", GetParam().c_str(), checks.largest());
}

TEST_P(LsGolden, Bf16) {
  if (!ChooseCompute("bf16", "", "").value().notes.empty()) GTEST_SKIP() << "no bf16 here";
  LsCase model(golden_.directory(), "bf16");
  LsGoldenChecks checks(golden_, kBf16Bound);
  checks.WholeTexts(model);
  checks.StepByStep(model);
  checks.Forks(model);
  std::printf("%-32s bf16 largest error %.2e\n", GetParam().c_str(), checks.largest());
}

INSTANTIATE_TEST_SUITE_P(Cases, LsGolden, testing::ValuesIn(LsGoldenNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace longview::models
