// Luna's encoders on their golden cases: what tests/models/encoder/golden_test.cc does not ask.
#include <gtest/gtest.h>

#include "tests/models/encoder/edge_frame.h"
#include "tests/models/encoder/encoder_case.h"

namespace longview::models {
namespace {

class LunaGoldenTest : public ::testing::TestWithParam<std::string> {};

TEST_P(LunaGoldenTest, WhoWantsAllRowsGetsTheSameBits) {
  ExpectFewRowsHaveTheSameBits(GoldenCase(GetParam(), "luna"), "mean");
}

INSTANTIATE_TEST_SUITE_P(Cases, LunaGoldenTest, ::testing::ValuesIn(EncoderCase::Names("luna")),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace longview::models
