// Every encoder case of golden/luna through the library: each item alone and all items in one
// batch, against the double-precision run of the published modules.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/models/luna/encoder_case.h"

namespace longview::models {
namespace {

class LunaGoldenTest : public testing::TestWithParam<std::string> {
 protected:
  const LunaEncoderCase case_{GetParam()};
};

TEST_P(LunaGoldenTest, LogitsAloneAndTogether) {
  ASSERT_GT(case_.items(), 0);
  const std::vector<Request> requests = case_.Requests();
  for (const std::string dtype : {"fp32", "bf16"}) {
    const auto model = case_.golden().Load(dtype);
    if (model->info().dtype != dtype) continue;
    std::vector<Answer> alone;
    for (const Request& request : requests) alone.push_back(RunAlone(*model, request));
    const double limit = dtype == "fp32" ? case_.golden().tolerance("logits") : 0.5;
    const double error = case_.Error(alone);
    EXPECT_LE(error, limit);
    EXPECT_LE(case_.Error(RunTogether(*model, requests)), limit);
    std::printf("%-28s %s largest error %.2e\n", GetParam().c_str(), dtype.c_str(), error);
  }
}

// Documents that want only a few rows take another way through the last layer.
TEST_P(LunaGoldenTest, WhoWantsAllRowsGetsTheSameBits) {
  if (case_.pair()) return;
  const auto model = case_.golden().Load("fp32");
  for (int i = 0; i < case_.items(); ++i) {
    Request some = TokenRequest(Task::kEmbedding, case_.golden().Tokens(i), {"embedding"});
    some.pooling = "mean";
    Request all = some;
    all.tensors = {"embedding", "last_hidden_state"};
    EXPECT_EQ(RunAlone(*model, some).tensors.at(0).data, RunAlone(*model, all).tensors.at(0).data)
        << "item " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, LunaGoldenTest, testing::ValuesIn(LunaEncoderCase::Names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace longview::models
