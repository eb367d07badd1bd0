// Int8 products: every way to multiply gives the bits of the definition, over hostile shapes.
#include "kernels/dense/int8_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/base/bfloat16.h"

namespace longview::kernels {
namespace {

std::vector<const Int8Kernels*> Ways() {
  std::vector<const Int8Kernels*> ways = {&kInt8Ref, &kInt8ShiftedRef};
  if (const Int8Kernels* avx2 = Int8KernelsOfAvx2()) ways.push_back(avx2);
  return ways;
}

// All that quantise; of some a library brings the products.
std::vector<const Int8Kernels*> RowWays() {
  std::vector<const Int8Kernels*> ways = Ways();
  if (const Int8Kernels* avx512 = Int8RowsOfAvx512()) ways.push_back(avx512);
  return ways;
}

// A quantised row as signed integers, whatever its form.
std::vector<int> Signed(const Int8Kernels& way, const std::vector<std::byte>& row,
                        int64_t columns) {
  std::vector<int> values(static_cast<size_t>(columns));
  for (int64_t i = 0; i < columns; ++i) {
    if (way.element_bytes == 1) {
      values[i] = static_cast<int>(static_cast<uint8_t>(row[i])) - way.shift;
    } else {
      int16_t value;
      std::memcpy(&value, row.data() + i * 2, 2);
      values[i] = value - way.shift;
    }
  }
  return values;
}

struct Row {
  std::vector<int> values;
  float scale = 0;
};

Row Quantize(const Int8Kernels& way, const std::vector<float>& x) {
  const auto in = static_cast<int64_t>(x.size());
  std::vector<std::byte> out(static_cast<size_t>(Int8Columns(in) * way.element_bytes));
  const float scale = way.quantize(x.data(), in, out.data());
  return {Signed(way, out, Int8Columns(in)), scale};
}

TEST(Int8Rows, TheLargestMagnitudeBecomes127) {
  for (const Int8Kernels* way : RowWays()) {
    const Row row = Quantize(*way, {0.5f, -2.0f, 1.0f, 0.0f, 2.0f / 127 * 2.5f});
    EXPECT_FLOAT_EQ(row.scale, 2.0f / 127) << way->name;
    EXPECT_EQ(row.values, (std::vector<int>{32, -127, 64, 0, 2, 0, 0, 0})) << way->name;
  }
}

TEST(Int8Rows, ZerosAndTheSmallestNumbersAreZeros) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  for (const Int8Kernels* way : RowWays()) {
    for (const float value : {0.0f, -0.0f, tiny}) {
      const Row row = Quantize(*way, std::vector<float>(5, value));
      EXPECT_EQ(row.scale, 0) << way->name;
      EXPECT_EQ(row.values, std::vector<int>(8, 0)) << way->name;
    }
  }
}

TEST(Int8Rows, AValueThatIsNotFiniteMakesTheRowNaN) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const Int8Kernels* way : RowWays()) {
    for (const float bad : {inf, -inf, std::nanf("")}) {
      for (size_t place = 0; place < 21; ++place) {
        std::vector<float> x(21, 1.0f);
        x[place] = bad;
        EXPECT_TRUE(std::isnan(Quantize(*way, x).scale)) << way->name << " " << bad;
      }
    }
  }
}

TEST(Int8Rows, AllWaysAgreeOnFloatsAndBfloat16) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const int64_t in : {1, 3, 4, 31, 64, 768, 1001}) {
    std::vector<uint16_t> halves;
    std::vector<float> x;
    for (int64_t i = 0; i < in; ++i) {
      halves.push_back(FloatToBFloat16(normal(random)));
      x.push_back(BFloat16ToFloat(halves.back()));
    }
    const Row want = Quantize(kInt8Ref, x);
    for (const Int8Kernels* way : RowWays()) {
      const Row floats = Quantize(*way, x);
      EXPECT_EQ(floats.values, want.values) << way->name << " " << in;
      EXPECT_EQ(floats.scale, want.scale) << way->name << " " << in;
      std::vector<std::byte> out(static_cast<size_t>(Int8Columns(in) * way->element_bytes));
      EXPECT_EQ(way->quantize_bf16(halves.data(), in, out.data()), want.scale) << way->name;
      EXPECT_EQ(Signed(*way, out, Int8Columns(in)), want.values) << way->name << " " << in;
    }
  }
}

TEST(Int8Rows, AllWaysScaleSumsAlike) {
  std::mt19937 random(4);
  for (const int64_t count : {1, 7, 16, 63, 64}) {
    std::vector<int32_t> sums, offsets;
    std::vector<float> scales;
    for (int64_t o = 0; o < count; ++o) {
      sums.push_back(static_cast<int32_t>(random()) >> 3);
      offsets.push_back(static_cast<int32_t>(random()) >> 8);
      scales.push_back(static_cast<float>(random() % 1000) * 1e-4f);
    }
    for (const Int8Kernels* way : RowWays()) {
      std::vector<float> y(static_cast<size_t>(count));
      std::vector<uint16_t> halves(static_cast<size_t>(count));
      way->dequantize(sums.data(), offsets.data(), scales.data(), 0.037f, count, y.data());
      way->dequantize_bf16(sums.data(), offsets.data(), scales.data(), 0.037f, count,
                           halves.data());
      for (int64_t o = 0; o < count; ++o) {
        EXPECT_EQ(y[o], static_cast<float>(sums[o] - offsets[o]) * scales[o] * 0.037f);
        EXPECT_EQ(halves[o], FloatToBFloat16(y[o])) << way->name;
      }
    }
  }
}

struct Size {
  int64_t out, in;
};

// Every value at its limit beside random ones: sums that an instruction would saturate show.
TEST(Int8Product, EveryWayIsExact) {
  std::mt19937 random(5);
  for (const auto [out, in] : {Size{64, 4}, {1, 1}, {63, 10}, {65, 512}, {200, 769}, {64, 4096}}) {
    const int64_t columns = Int8Columns(in), units = Int8Units(out);
    for (const bool extreme : {false, true}) {
      std::vector<int8_t> plain(static_cast<size_t>(out * in));
      for (int8_t& value : plain) {
        value =
            extreme ? (random() % 2 != 0 ? 127 : -127) : static_cast<int8_t>(random() % 255 - 127);
      }
      std::vector<int8_t> packed(Int8WeightBytes(out, in));
      for (int64_t i = 0; i < out * in; ++i) {
        packed[Int8Place(i / in, i % in, in)] = plain[static_cast<size_t>(i)];
      }
      for (const int64_t rows : {1, 2, 3, 4, 5, 7, 13, 64}) {
        std::vector<int> x(static_cast<size_t>(rows * columns));
        for (int64_t i = 0; i < rows * columns; ++i) {
          if (i % columns >= in) continue;
          x[i] = extreme ? 127 : static_cast<int>(random() % 255) - 127;
        }
        for (const Int8Kernels* way : Ways()) {
          std::vector<std::byte> quantized(x.size() * way->element_bytes);
          for (size_t i = 0; i < x.size(); ++i) {
            const int shifted = x[i] + way->shift;
            std::memcpy(quantized.data() + i * way->element_bytes, &shifted, way->element_bytes);
          }
          for (int64_t unit = 0; unit < units; ++unit) {
            std::vector<int32_t> sums(static_cast<size_t>(rows * kInt8Unit));
            way->multiply(packed.data() + unit * kInt8Unit * columns, quantized.data(), columns,
                          rows, sums.data());
            for (int64_t r = 0; r < rows; ++r) {
              for (int64_t o = unit * kInt8Unit; o < std::min(out, (unit + 1) * kInt8Unit); ++o) {
                int64_t want = 0, weights = 0;
                for (int64_t i = 0; i < in; ++i) {
                  want += int64_t{x[r * columns + i]} * plain[o * in + i];
                  weights += plain[o * in + i];
                }
                ASSERT_EQ(sums[r * kInt8Unit + o % kInt8Unit], want + way->shift * weights)
                    << way->name << " " << out << " x " << in << " rows " << rows;
              }
            }
          }
        }
      }
    }
  }
}

TEST(Int8Weight, IsPackedWithAScaleForEachOutput) {
  const std::vector<float> weight = {1, -2, 0.5f, 0, 0, 0, 3, 3, -3};
  std::vector<int8_t> packed(Int8WeightBytes(3, 3), 77);
  std::vector<float> scales(3);
  PackInt8Weight(weight, 3, 3, packed.data(), scales.data());
  EXPECT_EQ(scales, (std::vector<float>{2.0f / 127, 0, 3.0f / 127}));
  const int want[3][3] = {{64, -127, 32}, {0, 0, 0}, {127, 127, -127}};
  int sum = 0;
  for (int64_t o = 0; o < 3; ++o) {
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(packed[Int8Place(o, i, 3)], want[o][i]) << o << ", " << i;
      sum += want[o][i];
    }
  }
  int all = 0;
  for (const int8_t value : packed) all += value;
  EXPECT_EQ(all, sum) << "what fills up is zero";
}

}  // namespace
}  // namespace longview::kernels
