// A linear's rows: right against a double-precision product, and the same bits in any batch.
#include "models/dense/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "models/parallel.h"

namespace longview::models {
namespace {

struct Shape {
  int out, in;
};
constexpr Shape kShapes[] = {{24, 16},  {5, 32},   {1, 32},   {64, 32},    {96, 48},
                             {16, 27},  {36, 36},  {768, 96}, {2304, 128}, {64, 147},
                             {24, 108}, {36, 216}, {8, 1}};

uint16_t ToBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float FromBf16(uint16_t half) {
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

// Rows of the compute type in a buffer padded for the last panel.
class Rows {
 public:
  Rows(Compute compute, int64_t rows, int64_t width, std::mt19937& random)
      : compute_(compute), width_(width), bytes_(PaddedRows(rows) * width * ElementBytes(compute)) {
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < rows * width; ++i) Set(i, normal(random));
  }
  void Set(int64_t i, float value) {
    const uint16_t half = ToBf16(value);
    const bool is_float = compute_ == Compute::kFp32;
    std::memcpy(bytes_.data() + i * ElementBytes(compute_),
                is_float ? static_cast<const void*>(&value) : &half, ElementBytes(compute_));
  }
  float At(int64_t row, int64_t column) const {
    return Read(compute_, bytes_.data(), row * width_ + column);
  }
  static float Read(Compute compute, const void* data, int64_t i) {
    if (compute == Compute::kFp32) return static_cast<const float*>(data)[i];
    return FromBf16(static_cast<const uint16_t*>(data)[i]);
  }
  char* row(int64_t i) { return bytes_.data() + i * width_ * ElementBytes(compute_); }

 private:
  Compute compute_;
  int64_t width_;
  std::vector<char> bytes_;
};

std::vector<char> RunLinear(const Linear& linear, const void* x, int64_t rows) {
  const int64_t row_bytes = linear.out() * ElementBytes(linear.compute());
  std::vector<char> y(rows * row_bytes);
  ForEachPanel(linear, x, rows, [&](int64_t first, int64_t count, void* data) {
    std::memcpy(y.data() + first * row_bytes, data, count * row_bytes);
  });
  return y;
}

class LinearTest : public testing::TestWithParam<std::tuple<int, Compute>> {
 protected:
  void SetUp() override {
    shape_ = kShapes[std::get<0>(GetParam())];
    compute_ = std::get<1>(GetParam());
    std::normal_distribution<float> normal;
    weight_.resize(static_cast<size_t>(shape_.out) * shape_.in);
    for (float& w : weight_) w = FromBf16(ToBf16(normal(random_)));
    auto linear = Linear::Pack("w", weight_, shape_.out, shape_.in, compute_, rules_);
    if (!linear.ok() && compute_ == Compute::kBf16) GTEST_SKIP() << linear.status();
    ASSERT_TRUE(linear.ok()) << linear.status();
    linear_.emplace(*std::move(linear));
  }

  Shape shape_;
  Compute compute_;
  std::mt19937 random_{3};
  std::vector<float> weight_;
  PanelRules rules_;
  std::optional<Linear> linear_;
};

TEST_P(LinearTest, IsTheProduct) {
  constexpr int kRows = 300;
  Rows x(compute_, kRows, shape_.in, random_);
  const std::vector<char> y = RunLinear(*linear_, x.row(0), kRows);
  const double tolerance = compute_ == Compute::kFp32 ? 1e-5 : 8e-3;
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t o = 0; o < shape_.out; ++o) {
      double want = 0, size = 1;
      for (int64_t i = 0; i < shape_.in; ++i) {
        const double term = double{x.At(row, i)} * weight_[o * shape_.in + i];
        want += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(Rows::Read(compute_, y.data(), row * shape_.out + o), want, tolerance * size);
    }
  }
}

TEST_P(LinearTest, RowsKeepTheirBitsInAnyBatch) {
  constexpr int64_t kDocument = 37;
  Rows document(compute_, kDocument, shape_.in, random_);
  const std::vector<char> alone = RunLinear(*linear_, document.row(0), kDocument);
  for (const int64_t before : {0, 1, 15, 64, 219, 250, 500}) {
    for (const int64_t after : {0, 3, 200}) {
      const int64_t rows = before + kDocument + after;
      Rows batch(compute_, rows, shape_.in, random_);
      std::memcpy(batch.row(before), document.row(0), document.row(kDocument) - document.row(0));
      const std::vector<char> together = RunLinear(*linear_, batch.row(0), rows);
      const size_t skip = before * shape_.out * ElementBytes(compute_);
      ASSERT_EQ(std::memcmp(alone.data(), together.data() + skip, alone.size()), 0)
          << before << " rows before, " << after << " after";
    }
  }
}

TEST_P(LinearTest, EqualRowsHaveEqualBitsAtEveryPlace) {
  constexpr int64_t kRows = 3 * kPanelRows + 5;
  Rows x(compute_, kRows, shape_.in, random_);
  for (int64_t row = 1; row < kRows; ++row) {
    std::memcpy(x.row(row), x.row(0), x.row(1) - x.row(0));
  }
  const std::vector<char> y = RunLinear(*linear_, x.row(0), kRows);
  const int64_t bytes = shape_.out * ElementBytes(compute_);
  for (int64_t row = 1; row < kRows; ++row) {
    ASSERT_EQ(std::memcmp(y.data(), y.data() + row * bytes, bytes), 0) << row;
  }
}

// Kernels that multiply pairs of values, or tiles, may load a row's end together with the next
// row's beginning.
TEST_P(LinearTest, RowsDoNotSeeWhatLiesBesideThem) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t rows : {1, 16, 37, 64, 300, 512}) {
    Rows zeros(compute_, rows + kPanelRows, shape_.in, random_);
    Rows x(compute_, rows + kPanelRows, shape_.in, random_);
    for (int64_t i = 0; i < (rows + kPanelRows) * shape_.in; ++i) {
      const bool own = i < rows * shape_.in && i / shape_.in % 2 == 0;
      zeros.Set(i, own ? x.At(0, i) : 0);
      if (!own) x.Set(i, kNan);
    }
    const std::vector<char> alone = RunLinear(*linear_, zeros.row(0), rows);
    const std::vector<char> beside = RunLinear(*linear_, x.row(0), rows);
    const int64_t bytes = shape_.out * ElementBytes(compute_);
    for (int64_t row = 0; row < rows; row += 2) {
      ASSERT_EQ(std::memcmp(alone.data() + row * bytes, beside.data() + row * bytes, bytes), 0)
          << row << " of " << rows;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, LinearTest,
                         testing::Combine(testing::Range(0, static_cast<int>(std::size(kShapes))),
                                          testing::Values(Compute::kFp32, Compute::kBf16)),
                         [](const auto& info) {
                           const Shape shape = kShapes[std::get<0>(info.param)];
                           return std::to_string(shape.out) + "x" + std::to_string(shape.in) +
                                  (std::get<1>(info.param) == Compute::kFp32 ? "_fp32" : "_bf16");
                         });

TEST(NextPanelTest, CoversEveryCountOnceWithAllowedSizes) {
  for (const PanelSizes sizes :
       {PanelSizes{false, false, true}, PanelSizes{true, true, true}, PanelSizes{false, true, true},
        PanelSizes{true, false, true}, PanelSizes{true, true, false},
        PanelSizes{true, true, true, false, false, 192, 48},
        PanelSizes{false, false, true, false, false, 192, 48}}) {
    for (int64_t rows = 1; rows < 700; ++rows) {
      int64_t left = rows, padded = 0;
      while (left > 0) {
        const int panel = NextPanel(sizes, left);
        ASSERT_TRUE(panel == sizes.large_rows || (panel == sizes.medium_rows && sizes.medium) ||
                    (panel == 16 && sizes.small));
        padded += panel;
        left -= panel;
      }
      ASSERT_LE(padded, PaddedRows(rows));
    }
  }
}

TEST(ParallelTest, EveryIndexOnce) {
  const TorchParallelFor pool;
  std::vector<int> used(pool.threads());
  kernels::RunOnThreads(pool, [&](int thread) { ++used[thread]; });
  EXPECT_EQ(used, std::vector<int>(pool.threads(), 1));
}

TEST(ParallelTest, RangesCoverTheCount) {
  const TorchParallelFor pool;
  for (const long count : {0L, 1L, 7L, 1000L}) {
    std::vector<int> used(count);
    ParallelRanges(pool, count, 3, [&](long begin, long end) {
      for (long i = begin; i < end; ++i) ++used[i];
    });
    EXPECT_EQ(used, std::vector<int>(count, 1));
  }
}

}  // namespace
}  // namespace longview::models
