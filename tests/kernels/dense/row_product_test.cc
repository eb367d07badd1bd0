#include "kernels/dense/row_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "kernels/base/bfloat16.h"
#include "tests/kernels/support/run.h"

namespace longview::kernels {
namespace {

struct FreeDeleter {
  void operator()(std::byte* p) const { std::free(p); }
};

struct Weight {
  Weight(int64_t out, int64_t in, DType dtype, std::mt19937* random) {
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < out * in; ++i) values.push_back(normal(*random));
    const size_t bytes = RowWeightBytes(out, in, dtype);
    memory.reset(static_cast<std::byte*>(std::aligned_alloc(64, bytes)));
    PackRowWeight(values, out, in, dtype, memory.get());
    packed = {memory.get(), dtype, out, in};
  }
  std::vector<float> values;
  std::unique_ptr<std::byte, FreeDeleter> memory;
  RowWeight packed;
};

std::vector<Isa> Isas() {
  std::vector<Isa> isas = {Isa::kScalar};
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16}) {
    if (IsaSupported(isa)) isas.push_back(isa);
  }
  return isas;
}

std::vector<float> Random(int64_t count, std::mt19937* random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(*random);
  return values;
}

struct Size {
  int64_t out, in;
};

TEST(RowProduct, EqualsTheDefinition) {
  std::mt19937 random(1);
  for (const auto [out, in] : {Size{64, 2}, {1, 16}, {63, 10}, {65, 512}, {208, 96}, {1544, 128}}) {
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      const Weight weight(out, in, dtype, &random);
      for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 13}) {
        const int64_t x_stride = in + 3, y_stride = out + 5;
        const std::vector<float> x = Random(rows * x_stride, &random);
        std::vector<double> want(rows * out);
        for (int64_t i = 0; i < rows * out; ++i) {
          for (int64_t j = 0; j < in; ++j) {
            const float w = weight.values[i % out * in + j];
            const float stored = dtype == DType::kFloat32 ? w : BFloat16ToFloat(FloatToBFloat16(w));
            want[i] += double{x[i / out * x_stride + j]} * stored;
          }
        }
        for (const Isa isa : Isas()) {
          std::vector<float> y(rows * y_stride, 77.0f);
          MultiplyRows(weight.packed, x.data(), x_stride, rows, y.data(), y_stride,
                       testing::Threads(3), isa);
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t o = 0; o < out; ++o) {
              ASSERT_NEAR(y[r * y_stride + o], want[r * out + o],
                          2e-6 * std::sqrt(static_cast<double>(in)) * 4)
                  << IsaName(isa) << " " << out << " x " << in << " rows " << rows;
            }
            for (int64_t o = out; o < y_stride; ++o) ASSERT_EQ(y[r * y_stride + o], 77.0f);
          }
        }
      }
    }
  }
}

TEST(RowProduct, BitsOfARowDependOnNothingElse) {
  constexpr int64_t kOut = 200, kIn = 130, kRows = 17;
  std::mt19937 random(2);
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const Weight weight(kOut, kIn, dtype, &random);
    const std::vector<float> x = Random(kRows * kIn, &random);
    for (const Isa isa : Isas()) {
      std::vector<float> all(kRows * kOut);
      MultiplyRows(weight.packed, x.data(), kIn, kRows, all.data(), kOut, testing::Threads(2), isa);
      for (int64_t first = 0; first < kRows; ++first) {
        for (int64_t rows = 1; first + rows <= kRows; ++rows) {
          std::vector<float> some(rows * kOut);
          MultiplyRows(weight.packed, x.data() + first * kIn, kIn, rows, some.data(), kOut,
                       SerialFor(), isa);
          ASSERT_TRUE(std::equal(some.begin(), some.end(), all.begin() + first * kOut))
              << IsaName(isa) << " rows " << first << " .. " << first + rows;
        }
      }
    }
  }
}

}  // namespace
}  // namespace longview::kernels
