// Every encoder case of golden/cst through the library: each item alone and all items in one batch,
// logits and last hidden states, against the double-precision run of the definition.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/models/cst/encoder_case.h"

namespace longview::models {
namespace {

class CstGoldenTest : public testing::TestWithParam<std::string> {
 protected:
  const CstEncoderCase case_{GetParam()};
  const GoldenCase& golden_ = case_.golden();
};

TEST_P(CstGoldenTest, LogitsAloneAndTogether) {
  ASSERT_GT(case_.items(), 0);
  for (const std::string dtype : {"fp32", "bf16"}) {
    const auto model = golden_.Load(dtype);
    if (model->info().dtype != dtype) continue;
    const Task task = model->info().task;
    const std::vector<Request> requests = case_.Requests(task);
    std::vector<Answer> alone;
    for (const Request& request : requests) alone.push_back(RunAlone(*model, request));
    const double limit =
        dtype == "fp32" ? golden_.tolerance("logits") : CstEncoderCase::Bf16Limit(task);
    const double error = case_.Error(alone);
    EXPECT_LE(error, limit);
    EXPECT_LE(case_.Error(RunTogether(*model, requests)), limit);
    std::printf("%-28s %s largest error %.2e\n", GetParam().c_str(), dtype.c_str(), error);
  }
}

TEST_P(CstGoldenTest, LastHiddenStates) {
  const auto model = golden_.Load("fp32");
  const Request request =
      TokenRequest(Task::kEmbedding, golden_.Tokens(0, case_.first()), {"last_hidden_state"});
  EXPECT_LE(LargestDifference(RunAlone(*model, request).tensors.at(0).floats(),
                              golden_.Expected("hidden.last")),
            golden_.tolerance("hidden"));
}

INSTANTIATE_TEST_SUITE_P(Cases, CstGoldenTest, testing::ValuesIn(CstEncoderCase::Names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace longview::models
