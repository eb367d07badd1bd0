#include "kernels/base/cpu_features.h"

#include <gtest/gtest.h>

#include <string>

#include "kernels/base/peak_rate.h"

namespace longview::kernels {
namespace {

constexpr Isa kAll[] = {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmxBf16};

TEST(CpuFeaturesTest, WiderSetsImplyNarrowerOnes) {
  EXPECT_TRUE(IsaSupported(Isa::kScalar));
  if (IsaSupported(Isa::kAmxBf16)) {
    EXPECT_TRUE(IsaSupported(Isa::kAvx512Bf16));
  }
  if (IsaSupported(Isa::kAvx512Bf16)) {
    EXPECT_TRUE(IsaSupported(Isa::kAvx512));
  }
  if (IsaSupported(Isa::kAvx512)) {
    EXPECT_TRUE(IsaSupported(Isa::kAvx2));
  }
}

TEST(CpuFeaturesTest, ChoicesRunHere) {
  EXPECT_TRUE(IsaSupported(BestFloatIsa()));
  EXPECT_TRUE(IsaSupported(BestBf16Isa()));
  EXPECT_LE(BestFloatIsa(), Isa::kAvx512);
  EXPECT_EQ(BestBf16Isa(), BestBf16Isa());
}

TEST(CpuFeaturesTest, PeakIsMeasuredExactlyWhereTheSetRuns) {
  for (Isa isa : kAll) {
    const double rate = PeakGflops(isa);
    if (isa == Isa::kScalar || !IsaSupported(isa)) {
      EXPECT_EQ(rate, 0.0) << IsaName(isa);
    } else {
      EXPECT_GT(rate, 1.0) << IsaName(isa);
      EXPECT_LT(rate, 20000.0) << IsaName(isa);
      RecordProperty(std::string(IsaName(isa)), std::to_string(rate));
    }
  }
}

TEST(CpuFeaturesTest, Bf16IsChosenForSpeedOnly) {
  if (!IsaSupported(Isa::kAvx512Bf16) || IsaSupported(Isa::kAmxBf16)) GTEST_SKIP() << "no choice";
  const double ratio = PeakGflops(Isa::kAvx512Bf16) / PeakGflops(Isa::kAvx512);
  if (ratio > 1.5) {
    EXPECT_EQ(BestBf16Isa(), Isa::kAvx512Bf16);
  }
  if (ratio < 1.0) {
    EXPECT_EQ(BestBf16Isa(), Isa::kAvx512);
  }
}

}  // namespace
}  // namespace longview::kernels
