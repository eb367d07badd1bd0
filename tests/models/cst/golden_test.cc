// Composite Slice encoders on their golden cases: the last hidden states against the
// double-precision run of the definition.
#include <gtest/gtest.h>

#include "tests/models/encoder/encoder_case.h"

namespace longview::models {
namespace {

class CstGoldenTest : public ::testing::TestWithParam<std::string> {};

TEST_P(CstGoldenTest, LastHiddenStates) {
  const EncoderCase test({"cst", GetParam()});
  const GoldenCase& golden = test.golden();
  const Request request =
      TokenRequest(Task::kEmbedding, *test.requests().at(0).tokens, {"last_hidden_state"});
  EXPECT_LE(LargestDifference(RunAlone(*golden.Load("fp32"), request).tensors.at(0).floats(),
                              golden.Expected("hidden.last")),
            golden.tolerance("hidden"));
}

INSTANTIATE_TEST_SUITE_P(Cases, CstGoldenTest, ::testing::ValuesIn(EncoderCase::Names("cst")),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace longview::models
