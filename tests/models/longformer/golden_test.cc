// Longformer on its golden cases: what tests/models/encoder/golden_test.cc does not ask.
#include <gtest/gtest.h>

#include "tests/models/encoder/edge_frame.h"
#include "tests/models/encoder/encoder_case.h"

namespace longview::models {
namespace {

class LongformerGoldenTest : public ::testing::TestWithParam<std::string> {};

TEST_P(LongformerGoldenTest, TheLastLayerForNeededRowsOnlyGivesTheSameBits) {
  ExpectFewRowsHaveTheSameBits(GoldenCase(GetParam(), "longformer"), "cls");
}

INSTANTIATE_TEST_SUITE_P(Cases, LongformerGoldenTest,
                         ::testing::ValuesIn(EncoderCase::Names("longformer")),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace longview::models
