// 16-bit elements against the compiler's own half and the CPU kernels' bfloat16, bit by bit.
#include "kernels/cuda/base/element.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "kernels/base/bfloat16.h"

namespace longview::kernels::cuda {
namespace {

uint16_t HalfBits(float value) {
  const auto half = static_cast<_Float16>(value);
  uint16_t bits;
  std::memcpy(&bits, &half, sizeof(bits));
  return bits;
}

TEST(ElementTest, EveryHalfWidensExactly) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half_bits = static_cast<uint16_t>(bits);
    _Float16 half;
    std::memcpy(&half, &half_bits, sizeof(half));
    const auto want = static_cast<float>(half);
    const float got = FloatOfFloat16(half_bits);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got)) << bits;
    } else {
      EXPECT_EQ(FloatBits(got), FloatBits(want)) << bits;
      EXPECT_EQ(Float16OfFloat(got), half_bits) << bits;
    }
  }
}

TEST(ElementTest, HalvesRoundToNearestEven) {
  // Around every half: the halves' own values, the midpoints, and one float to either side.
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const float low = FloatOfFloat16(static_cast<uint16_t>(bits));
    const float high = bits == 0x7bff ? 65536.0f : FloatOfFloat16(static_cast<uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;
    for (const float value : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f)}) {
      ASSERT_EQ(Float16OfFloat(value), HalfBits(value)) << value;
      ASSERT_EQ(Float16OfFloat(-value), HalfBits(-value)) << value;
    }
  }
  for (const float value : {1e6f, INFINITY, 1e-9f, 0.0f}) {
    EXPECT_EQ(Float16OfFloat(value), HalfBits(value)) << value;
  }
  EXPECT_TRUE(std::isnan(FloatOfFloat16(Float16OfFloat(NAN))));
}

TEST(ElementTest, BFloat16IsTheCpus) {
  std::mt19937 random(5);
  for (int i = 0; i < 200000; ++i) {
    const float value = FloatOfBits(random());
    ASSERT_EQ(BFloat16OfFloat(value), FloatToBFloat16(value)) << FloatBits(value);
  }
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto b = static_cast<uint16_t>(bits);
    ASSERT_EQ(FloatBits(FloatOfBFloat16(b)), FloatBits(BFloat16ToFloat(b)));
  }
}

}  // namespace
}  // namespace longview::kernels::cuda
