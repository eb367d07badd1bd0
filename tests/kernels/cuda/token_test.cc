// The steps of a generating model's pass on a device, against definitions in double precision; and
// that no row's bits depend on its batch mates.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "kernels/cuda/span/span_call.h"
#include "tests/kernels/cuda/support/test_device.h"

namespace longview::kernels::cuda {
namespace {

using testing::TestDevice;
using testing::TestDevices;

constexpr float kEps = 1e-5f;

std::vector<float> Random(size_t count, int seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> values(count);
  // Exact in all types.
  for (float& value : values) value = std::round(normal(random) * 32) / 32;
  return values;
}

// Tensors marked T, of any type.
class Typed {
 public:
  Typed(TestDevice& device, DType dtype) : device_(device), dtype_(dtype) {}

  void* Upload(const std::vector<float>& values) const {
    if (dtype_ == DType::kFloat32) return device_.Upload(values);
    return device_.Upload(testing::Rounded(values, dtype_));
  }
  void* Allocate(size_t count) const { return Upload(std::vector<float>(count, 77)); }
  std::vector<float> Download(const void* memory, size_t count) const {
    if (dtype_ == DType::kFloat32) {
      return device_.Download(static_cast<const float*>(memory), count);
    }
    return testing::Widened(device_.Download(static_cast<const uint16_t*>(memory), count), dtype_);
  }

 private:
  TestDevice& device_;
  const DType dtype_;
};

// Every device and type.
template <typename Body>
void OnAll(Body&& body) {
  for (const auto& device : TestDevices()) {
    for (const DType dtype : testing::kDeviceTypes) {
      SCOPED_TRACE(device->name() + ", " + testing::TypeName(dtype));
      body(*device, dtype, Typed(*device, dtype));
    }
  }
}

void ExpectNear(const std::vector<float>& got, const std::vector<double>& want, DType dtype) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const double rounding = dtype == DType::kBFloat16 ? 0.004 : 0.0005;
    const double bound = dtype == DType::kFloat32 ? 2e-5 : rounding * std::fabs(want[i]) + 1e-4;
    ASSERT_NEAR(got[i], want[i], bound) << i;
  }
}

std::vector<double> Normed(std::span<const double> row, const std::vector<float>& gamma,
                           const std::vector<float>& beta) {
  double mean = 0, squares = 0;
  for (const double value : row) mean += value;
  mean /= static_cast<double>(row.size());
  for (const double value : row) squares += (value - mean) * (value - mean);
  const double factor = 1 / std::sqrt(squares / static_cast<double>(row.size()) + kEps);
  std::vector<double> normed;
  for (size_t i = 0; i < row.size(); ++i) {
    normed.push_back((row[i] - mean) * factor * gamma[i] + beta[i]);
  }
  return normed;
}

void Append(std::vector<double>& to, const std::vector<double>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

TEST(DeviceTokenTest, TheStreamTakesWhatIsGiven) {
  constexpr int kRows = 3, kWidth = 300;
  const auto x = Random(kRows * kWidth, 1), y = Random(kRows * kWidth, 2), bias = Random(kWidth, 3);
  const auto gamma = Random(kWidth, 4), beta = Random(kWidth, 5);
  OnAll([&](TestDevice& device, DType dtype, const Typed& typed) {
    for (int parts = 0; parts < 8; ++parts) {
      SCOPED_TRACE(parts);
      const bool adds = (parts & 1) != 0, norms = (parts & 2) != 0, copies = (parts & 4) != 0;
      StreamRows args = {};
      args.x = device.Upload(x);
      args.rows = kRows;
      args.width = kWidth;
      args.dtype = dtype;
      if (adds) {
        args.y = typed.Upload(y);
        args.bias = device.Upload(bias);
      }
      if (norms) args.norm = {device.Upload(gamma), device.Upload(beta), kEps};
      if (copies) args.copy = typed.Allocate(kRows * kWidth);
      ASSERT_EQ(device.api().token.stream(device.stream(), args), 0);
      std::vector<double> want;
      for (int row = 0; row < kRows; ++row) {
        std::vector<double> sum;
        for (int i = 0; i < kWidth; ++i) {
          const int at = row * kWidth + i;
          sum.push_back(double{x[at]} + (adds ? double{y[at]} + bias[i] : 0));
        }
        Append(want, norms ? Normed(sum, gamma, beta) : sum);
      }
      ExpectNear(device.Download(args.x, kRows * kWidth), want, DType::kFloat32);
      if (copies) ExpectNear(typed.Download(args.copy, kRows * kWidth), want, dtype);
    }
  });
}

TEST(DeviceTokenTest, AProjectedRowIsTakenApart) {
  constexpr int kRows = 4, kWidth = 200, kColumns = 12, kAll = 3 * kWidth + kColumns;
  const auto y = Random(kRows * kAll, 6), bias = Random(kAll, 7);
  const auto gamma = Random(kWidth, 8), beta = Random(kWidth, 9);
  std::vector<double> biased, keys, values, scores;
  for (int row = 0; row < kRows; ++row) {
    std::vector<double> all;
    for (int i = 0; i < kAll; ++i) all.push_back(double{y[row * kAll + i]} + bias[i]);
    const std::span<const double> of(all);
    Append(keys, Normed(of.subspan(kWidth, kWidth), gamma, beta));
    Append(values, Normed(of.subspan(2 * kWidth, kWidth), gamma, beta));
    Append(scores, {all.begin() + 3 * kWidth, all.end()});
    all.resize(3 * kWidth);
    Append(biased, all);
  }
  OnAll([&](TestDevice& device, DType dtype, const Typed& typed) {
    const ProjectedRows args = {typed.Upload(y),
                                device.Upload(bias),
                                {device.Upload(gamma), device.Upload(beta), kEps},
                                typed.Allocate(kRows * kWidth),
                                typed.Allocate(kRows * kWidth),
                                device.Allocate<float>(kRows * kColumns),
                                kRows,
                                kWidth,
                                kColumns,
                                dtype};
    ASSERT_EQ(device.api().token.project(device.stream(), args), 0);
    ExpectNear(typed.Download(args.keys, kRows * kWidth), keys, dtype);
    ExpectNear(typed.Download(args.values, kRows * kWidth), values, dtype);
    ExpectNear(device.Download(args.scores, kRows * kColumns), scores, DType::kFloat32);
    std::vector<float> got = typed.Download(args.y, kRows * kAll), qkv;
    for (int row = 0; row < kRows; ++row) {
      qkv.insert(qkv.end(), got.begin() + row * kAll, got.begin() + row * kAll + 3 * kWidth);
    }
    ExpectNear(qkv, biased, dtype);
  });
}

constexpr int kHeads = 3, kDim = 10, kBlocks = 4;

// A cache of small integers in T, two tensors alike.
struct TestCache {
  explicit TestCache(const Typed& typed)
      : pitch(BlockPitch(kDim)),
        elements(static_cast<size_t>(kBlocks * kHeads * kBlockSlots * pitch)),
        rows{typed.Allocate(elements), typed.Allocate(elements), kHeads, kDim, pitch} {}

  size_t At(CacheRowPlace place, int i) const {
    return static_cast<size_t>(
        ((place.block * kHeads + i / kDim) * kBlockSlots + place.slot) * pitch + i % kDim);
  }

  const int pitch;
  const size_t elements;
  const CacheRows rows;
};

TEST(DeviceTokenTest, RowsGoToTheirPlacesAndNowhereElse) {
  constexpr int kWidth = kHeads * kDim, kStride = kWidth + 4;
  const std::vector<CacheRowPlace> places = {{2, 63}, {-1, 0}, {0, 0}, {3, 17}};
  const auto keys = Random(places.size() * kStride, 10), values = Random(keys.size(), 11);
  OnAll([&](TestDevice& device, DType dtype, const Typed& typed) {
    const TestCache cache(typed);
    const StoreRows args = {
        typed.Upload(keys), typed.Upload(values), kStride, device.Upload(places),
        cache.rows,         std::ssize(places),   dtype};
    ASSERT_EQ(device.api().token.store(device.stream(), args), 0);
    for (const auto& [area, rows] :
         {std::pair(args.cache.k, &keys), std::pair(args.cache.v, &values)}) {
      std::vector<double> want(cache.elements, 77);
      for (size_t p = 0; p < places.size(); ++p) {
        for (int i = 0; i < kWidth && places[p].block >= 0; ++i) {
          want[cache.At(places[p], i)] = (*rows)[p * kStride + i];
        }
      }
      ExpectNear(typed.Download(area, cache.elements), want, DType::kFloat32);
    }
  });
}

// Sums of two segments, of which the call's columns are the middle third; the second lies at a
// layer's place.
class Sums {
 public:
  static constexpr int kRank = 2, kColumns = kHeads * kRank, kStateColumns = 3 * kColumns;

  SegmentSums On(TestDevice& device) const {
    float* const first =
        device.Upload(std::vector<float>(states_.begin(), states_.begin() + kState));
    std::vector<float> shifted(kShift);
    shifted.insert(shifted.end(), states_.begin() + kState, states_.end());
    float* const second = device.Upload(shifted);
    const std::vector<PoolRun> runs = {{first, 0, 0, 0, 0}, {second, 0, 0, 0, 1}};
    return {device.Upload(runs), kShift, kStateColumns, kColumns, 2, kRank};
  }

  // Rank page % kRank of all heads side by side.
  std::vector<double> Means(size_t page, int value) const {
    const float* state = states_.data() + (page < kRank ? 0 : kState);
    std::vector<double> means;
    for (int i = 0; i < kHeads * kDim; ++i) {
      const int column = kColumns + i / kDim * kRank + static_cast<int>(page % kRank);
      means.push_back(
          double{state[2 * kStateColumns + (value * kStateColumns + column) * kDim + i % kDim]} /
          state[kStateColumns + column]);
    }
    return means;
  }

 private:
  static constexpr int64_t kState = 2 * kStateColumns + 2 * kStateColumns * kDim, kShift = 500;

  static std::vector<float> Positive() {
    std::vector<float> states = Random(2 * kState, 14);
    // Sums of weights are positive.
    for (float& value : states) value = std::fabs(value) + 0.5f;
    return states;
  }
  const std::vector<float> states_ = Positive();
};

const std::vector<CacheRowPlace> kPages = {{1, 0}, {1, 1}, {-1, 0}, {3, 63}};

// A block's rows that are written, normed, and 77 elsewhere.
std::vector<double> Stored(const TestCache& cache, const std::vector<std::vector<double>>& rows,
                           const std::vector<float>& gamma, const std::vector<float>& beta) {
  std::vector<double> want(cache.elements, 77);
  for (size_t page = 0; page < kPages.size(); ++page) {
    if (kPages[page].block < 0) continue;
    const std::vector<double> normed = Normed(rows[page], gamma, beta);
    for (size_t i = 0; i < normed.size(); ++i) {
      want[cache.At(kPages[page], static_cast<int>(i))] = normed[i];
    }
  }
  return want;
}

TEST(DeviceTokenTest, PagesAreNormedMeansOfTheirSegments) {
  const Sums sums;
  const auto gamma = Random(kHeads * kDim, 12), beta = Random(kHeads * kDim, 13);
  OnAll([&](TestDevice& device, DType dtype, const Typed& typed) {
    const TestCache cache(typed);
    const PageRows args = {sums.On(device),
                           device.Upload(kPages),
                           cache.rows,
                           {device.Upload(gamma), device.Upload(beta), kEps},
                           dtype};
    ASSERT_EQ(device.api().token.pages(device.stream(), args), 0);
    for (int value = 0; value < 2; ++value) {
      std::vector<std::vector<double>> means;
      for (size_t page = 0; page < kPages.size(); ++page) means.push_back(sums.Means(page, value));
      ExpectNear(typed.Download(value == 0 ? args.cache.k : args.cache.v, cache.elements),
                 Stored(cache, means, gamma, beta), dtype);
    }
  });
}

TEST(DeviceTokenTest, MeansOfSegmentsAreRowsForALinear) {
  const Sums sums;
  OnAll([&](TestDevice& device, DType dtype, const Typed& typed) {
    void* const out = typed.Allocate(kPages.size() * kHeads * kDim);
    const SegmentMeans args = {sums.On(device), device.Upload(kPages), out, kHeads, kDim, dtype};
    ASSERT_EQ(device.api().token.means(device.stream(), args), 0);
    std::vector<double> want;
    for (size_t page = 0; page < kPages.size(); ++page) {
      const bool left = kPages[page].block < 0;
      Append(want, left ? std::vector<double>(kHeads * kDim, 77) : sums.Means(page, 0));
    }
    ExpectNear(typed.Download(out, want.size()), want, dtype);
  });
}

TEST(DeviceTokenTest, PagesOfALinearHaveItsBiasAndAreNormed) {
  constexpr int kWidth = kHeads * kDim, kStride = 2 * kWidth + 5;
  const auto gamma = Random(kWidth, 12), beta = Random(kWidth, 13);
  const auto y = Random(kPages.size() * kStride, 15), bias = Random(2 * kWidth, 16);
  OnAll([&](TestDevice& device, DType dtype, const Typed& typed) {
    const TestCache cache(typed);
    const LinearPages args = {typed.Upload(y),
                              kStride,
                              device.Upload(bias),
                              device.Upload(kPages),
                              cache.rows,
                              {device.Upload(gamma), device.Upload(beta), kEps},
                              static_cast<int32_t>(kPages.size()),
                              dtype};
    ASSERT_EQ(device.api().token.linear_pages(device.stream(), args), 0);
    for (int value = 0; value < 2; ++value) {
      std::vector<std::vector<double>> rows(kPages.size());
      for (size_t page = 0; page < kPages.size(); ++page) {
        for (int i = 0; i < kWidth; ++i) {
          const int column = value * kWidth + i;
          rows[page].push_back(double{y[page * kStride + column]} + bias[column]);
        }
      }
      ExpectNear(typed.Download(value == 0 ? args.cache.k : args.cache.v, cache.elements),
                 Stored(cache, rows, gamma, beta), dtype);
    }
  });
}

TEST(DeviceTokenTest, ProductsAreTheirDefinitionAndRowsDoNotDependOnBatchMates) {
  struct Shape {
    int rows, in, out;
  };
  for (const Shape& shape : {Shape{1, 64, 40}, Shape{8, 320, 9}, Shape{19, 130, 33}}) {
    const auto x = Random(shape.rows * shape.in, 15), weight = Random(shape.out * shape.in, 16);
    std::vector<double> want;
    for (int row = 0; row < shape.rows; ++row) {
      for (int out = 0; out < shape.out; ++out) {
        double sum = 0;
        for (int i = 0; i < shape.in; ++i) {
          sum += double{x[row * shape.in + i]} * weight[out * shape.in + i];
        }
        want.push_back(sum);
      }
    }
    OnAll([&](TestDevice& device, DType dtype, const Typed& typed) {
      const void* const weights = typed.Upload(weight);
      const auto multiply = [&](const std::vector<float>& rows) {
        const int64_t count = std::ssize(rows) / shape.in;
        void* const y = typed.Allocate(count * shape.out);
        EXPECT_EQ(device.api().token.product(device.stream(), {typed.Upload(rows), weights, y,
                                                               count, shape.in, shape.out, dtype}),
                  0);
        return typed.Download(y, count * shape.out);
      };
      const std::vector<float> together = multiply(x);
      ASSERT_EQ(together.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_NEAR(together[i], want[i],
                    dtype == DType::kFloat32    ? 1e-4
                    : dtype == DType::kBFloat16 ? 0.3
                                                : 0.04)
            << i;
      }
      for (int row = 0; row < shape.rows; ++row) {
        const std::vector<float> alone =
            multiply({x.begin() + row * shape.in, x.begin() + (row + 1) * shape.in});
        EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + row * shape.out));
      }
    });
  }
}

TEST(DeviceTokenTest, PositionScoresAreDotsUpToEveryRowsLimit) {
  constexpr int kRows = 3, kEntries = 300, kStride = 2 * kHeads * kDim;
  constexpr int64_t kRowStride = 310, kHeadStride = kRows * kRowStride;
  const std::vector<int32_t> limits = {129, 0, 300};
  const auto q = Random(kRows * kStride, 17), table = Random(kHeads * kEntries * kDim, 18);
  const auto add = Random(kHeads * kDim, 19);
  OnAll([&](TestDevice& device, DType dtype, const Typed& typed) {
    for (const bool adds : {false, true}) {
      const std::vector<float> before(kHeads * kHeadStride, 77);
      const PositionScores args = {typed.Upload(q),
                                   kStride,
                                   adds ? device.Upload(add) : nullptr,
                                   typed.Upload(table),
                                   kEntries,
                                   device.Upload(limits),
                                   kEntries,
                                   kHeadStride,
                                   kRowStride,
                                   device.Upload(before),
                                   kRows,
                                   kHeads,
                                   kDim,
                                   0.25f,
                                   dtype};
      ASSERT_EQ(device.api().token.positions(device.stream(), args), 0);
      std::vector<double> want(before.size(), 77);
      for (int row = 0; row < kRows; ++row) {
        for (int head = 0; head < kHeads; ++head) {
          for (int i = 0; i < limits[row]; ++i) {
            double sum = 0;
            for (int d = 0; d < kDim; ++d) {
              const double of =
                  double{q[row * kStride + head * kDim + d]} + (adds ? add[head * kDim + d] : 0);
              sum += 0.25 * of * table[(head * kEntries + i) * kDim + d];
            }
            want[head * kHeadStride + row * kRowStride + i] = sum;
          }
        }
      }
      ExpectNear(device.Download(args.scores, before.size()), want, DType::kFloat32);
    }
  });
}

}  // namespace
}  // namespace longview::kernels::cuda
