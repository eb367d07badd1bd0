// Operations on the memory of a generating model from pass to pass, on a device: rows of states and
// of the cache, parts of slices, packed rows of causal sums; and an adaptive softmax.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "kernels/cuda/span/span_call.h"
#include "kernels/linear_attention/running_outer.h"
#include "tests/kernels/cuda/support/test_device.h"

namespace longview::kernels::cuda {
namespace {

using testing::TestDevice;
using testing::TestDevices;

std::vector<float> Random(size_t count, int seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> values(count);
  // Exact in all types.
  for (float& value : values) value = std::round(normal(random) * 32) / 32;
  return values;
}

// Memory of T with these values.
void* Upload(TestDevice& device, DType dtype, const std::vector<float>& values) {
  if (dtype == DType::kFloat32) return device.Upload(values);
  return device.Upload(testing::Rounded(values, dtype));
}

std::vector<float> Download(TestDevice& device, DType dtype, const void* memory, size_t count) {
  if (dtype == DType::kFloat32) return device.Download(static_cast<const float*>(memory), count);
  return testing::Widened(device.Download(static_cast<const uint16_t*>(memory), count), dtype);
}

template <typename Body>
void OnAll(Body&& body) {
  for (const auto& device : TestDevices()) {
    for (const DType dtype : testing::kDeviceTypes) {
      SCOPED_TRACE(device->name() + ", " + testing::TypeName(dtype));
      body(*device, dtype);
    }
  }
}

TEST(DeviceStatesTest, RowsComeFromTheirPlacesInTheCache) {
  constexpr int kHeads = 3, kDim = 10, kBlocks = 4, kWidth = kHeads * kDim, kStride = kWidth + 2;
  const int pitch = BlockPitch(kDim);
  const std::vector<CacheRowPlace> places = {{2, 63}, {-1, 0}, {0, 0}};
  const auto keys = Random(static_cast<size_t>(kBlocks * kHeads * kBlockSlots * pitch), 1);
  const auto rows = Random(places.size() * kStride, 2);
  OnAll([&](TestDevice& device, DType dtype) {
    void* const cached = Upload(device, dtype, keys);
    const LoadRows args = {Upload(device, dtype, rows), kStride,
                           device.Upload(places),       {cached, cached, kHeads, kDim, pitch},
                           std::ssize(places),          dtype};
    ASSERT_EQ(device.api().token.load(device.stream(), args), 0);
    std::vector<float> want = rows;
    for (size_t p = 0; p < places.size(); ++p) {
      for (int i = 0; i < kWidth && places[p].block >= 0; ++i) {
        const int cell = places[p].block * kHeads + i / kDim;
        want[p * kStride + i] = keys[(cell * kBlockSlots + places[p].slot) * pitch + i % kDim];
      }
    }
    EXPECT_EQ(Download(device, dtype, args.keys, rows.size()), want);
  });
}

TEST(DeviceStatesTest, RowsGoToStatesAndComeBack) {
  constexpr int kWidth = 70, kStride = 75, kShift = 5, kFloats = 3 * kWidth + kShift;
  const auto rows = Random(4 * kStride, 3), before = Random(kFloats, 4);
  OnAll([&](TestDevice& device, DType dtype) {
    float* const states = device.Upload(before);
    const std::vector<StateRow> list = {{states + 2 * kWidth, 1}, {states, 3}};
    StateRows args = {device.Upload(list), kShift, Upload(device, dtype, rows), kStride, 2, kWidth,
                      /*stores=*/1,        dtype};
    ASSERT_EQ(device.api().token.states(device.stream(), args), 0);
    std::vector<float> want = before;
    std::copy_n(rows.begin() + kStride, kWidth, want.begin() + 2 * kWidth + kShift);
    std::copy_n(rows.begin() + 3 * kStride, kWidth, want.begin() + kShift);
    EXPECT_EQ(device.Download(states, kFloats), want);
    args.stores = 0;
    args.rows = Upload(device, dtype, std::vector<float>(rows.size(), 7));
    ASSERT_EQ(device.api().token.states(device.stream(), args), 0);
    std::vector<float> back(rows.size(), 7);
    for (const int row : {1, 3}) {
      std::copy_n(rows.begin() + row * kStride, kWidth, back.begin() + row * kStride);
    }
    EXPECT_EQ(Download(device, dtype, args.rows, rows.size()), back);
  });
}

// A slice in three parts is the whole one, in every bit.
TEST(DeviceStatesTest, PartsOfSlicesGoOnWithTheirSums) {
  constexpr int kWidth = 66;
  const auto rows = Random(9 * kWidth, 5);
  const std::vector<SlicePart> whole = {{2, 7, 1, 7}};
  const std::vector<SlicePart> parts[] = {{{2, 1, 1, 0}}, {{3, 4, 0, 0}}, {{7, 2, 0, 7}}};
  OnAll([&](TestDevice& device, DType dtype) {
    for (const int largest : {0, 1}) {
      const auto pool = [&](const std::vector<SlicePart>& list, float* sums) {
        const PoolParts args = {
            Upload(device, dtype, rows), device.Upload(list), 1, kWidth, largest, sums, dtype};
        EXPECT_EQ(device.api().encoder.pool_parts(device.stream(), args), 0);
      };
      float* const once = device.Upload(std::vector<float>(kWidth, 50));
      float* const bit_by_bit = device.Upload(std::vector<float>(kWidth, 50));
      pool(whole, once);
      for (const std::vector<SlicePart>& part : parts) pool(part, bit_by_bit);
      const std::vector<float> got = device.Download(once, kWidth);
      EXPECT_EQ(device.Download(bit_by_bit, kWidth), got);
      for (int c = 0; c < kWidth; ++c) {
        double sum = 0, top = -INFINITY;
        for (int row = 2; row < 9; ++row) {
          sum += rows[row * kWidth + c];
          top = std::max<double>(top, rows[row * kWidth + c]);
        }
        EXPECT_NEAR(got[c], largest == 1 ? top : sum / 7, 1e-6) << c;
      }
    }
  });
}

TEST(DeviceStatesTest, PackedRowsAreTheHosts) {
  for (const auto& [rows, width] : {std::pair(1, 3), std::pair(16, 8), std::pair(33, 20)}) {
    const auto projected = Random(static_cast<size_t>(rows * width), 6);
    std::vector<float> want(static_cast<size_t>(OuterPackedFloats(1, width, rows)));
    PackOuterRows(projected.data(), 1, width, rows, want.data());
    for (const auto& device : TestDevices()) {
      const PackedOuterRows args = {device->Upload(projected),
                                    device->Upload(std::vector<float>(want.size(), 9)), rows,
                                    width};
      ASSERT_EQ(device->api().outer.pack(device->stream(), args), 0);
      EXPECT_EQ(device->Download(args.packed, want.size()), want);
    }
  }
}

TEST(DeviceStatesTest, AnAdaptiveSoftmaxSumsToOne) {
  constexpr int kWords = 700, kRows = 3;
  const std::vector<int32_t> cutoffs = {10, 300, 699};
  const auto tails = static_cast<int>(cutoffs.size());
  std::vector<float> scores = Random(kRows * (kWords + 3), 7);
  scores[5] = 80;  // Its exp is beyond float sums of the rest.
  for (const auto& device : TestDevices()) {
    const AdaptiveRows args = {device->Upload(scores),
                               device->Upload(cutoffs),
                               device->Allocate<float>(kRows * kWords),
                               kRows,
                               kWords,
                               tails};
    ASSERT_EQ(device->api().token.adaptive(device->stream(), args), 0);
    const std::vector<float> got = device->Download(args.out, kRows * kWords);
    for (int row = 0; row < kRows; ++row) {
      const float* of = scores.data() + row * (kWords + tails);
      double head = 0, sum = 0;
      for (int w = 0; w < cutoffs[0]; ++w) head += std::exp(double{of[w]});
      for (int tail = 0; tail < tails; ++tail) head += std::exp(double{of[kWords + tail]});
      for (int w = 0; w < kWords; ++w) sum += std::exp(double{got[row * kWords + w]});
      EXPECT_NEAR(sum, 1, 1e-5);
      EXPECT_NEAR(got[row * kWords], of[0] - std::log(head), 1e-5);
      // The only word of the last tail: its probability is the tail's.
      EXPECT_NEAR(got[row * kWords + 699], of[kWords + 2] - std::log(head), 1e-5);
    }
  }
}

}  // namespace
}  // namespace longview::kernels::cuda
