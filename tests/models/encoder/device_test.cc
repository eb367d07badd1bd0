// Every golden case of every family of text encoders with the layers on a device, on every device
// there is.
#include <gtest/gtest.h>

#include "tests/models/encoder/device_frame.h"
#include "tests/models/encoder/encoder_case.h"

namespace longview::models {
namespace {

// A forward of thousands of tokens takes seconds on a device that is the host.
constexpr size_t kMostPooled = 1000;

class DeviceEncoderTest : public ::testing::TestWithParam<EncoderCaseName> {};

TEST_P(DeviceEncoderTest, AloneAndTogether) {
  const EncoderCase golden(GetParam(), kMostPooled);
  ASSERT_FALSE(golden.requests().empty());
  const std::string directory = golden.golden().directory();
  if (GetParam().family == "longformer") {
    // Some of these cases expect no states of their longest documents; the CPU's answers have them.
    ExpectTheCpusAnswers(GetParam().name, directory, golden.make(), golden.requests(),
                         {2e-4, 0.5, 0.05});
  } else {
    ExpectGoldenOnDevices({GetParam().name, directory, golden.make(), golden.requests(),
                           [&](const auto& answers) { return golden.Error(answers); },
                           golden.limits()});
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, DeviceEncoderTest,
                         ::testing::ValuesIn(EncoderCase::NamesOf(EncoderCase::Families())),
                         TestName);

}  // namespace
}  // namespace longview::models
