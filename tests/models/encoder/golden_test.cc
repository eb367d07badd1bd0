// Every golden case of every family of text encoders through the library: each item alone, with the
// same bits as among all items, against the double-precision run of the original.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/models/encoder/encoder_case.h"

namespace longview::models {
namespace {

class EncoderGoldenTest : public ::testing::TestWithParam<EncoderCaseName> {};

TEST_P(EncoderGoldenTest, AloneAndTogether) {
  const EncoderCase golden(GetParam());
  ASSERT_FALSE(golden.requests().empty());
  for (const auto& [dtype, limit] : {std::pair{"fp32", golden.limits().fp32},
                                     {"bf16", golden.limits().bf16},
                                     {"int8", golden.limits().int8}}) {
    SCOPED_TRACE(dtype);
    const auto model = golden.golden().Load(dtype);
    if (model->info().dtype != dtype) continue;
    const double error = golden.Error(ExpectSameBitsAloneAndTogether(*model, golden.requests()));
    EXPECT_LE(error, limit);
    std::printf("%-40s %s largest error %.2e of %.2e\n", GetParam().name.c_str(), dtype, error,
                limit);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, EncoderGoldenTest,
                         ::testing::ValuesIn(EncoderCase::NamesOf(EncoderCase::Families())),
                         TestName);

}  // namespace
}  // namespace longview::models
