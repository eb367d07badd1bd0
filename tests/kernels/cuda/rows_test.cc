// Row kernels of a device against their definitions in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/cuda/support/row_values.h"
#include "tests/kernels/cuda/support/test_device.h"

namespace longview::kernels::cuda {
namespace {

using testing::Download;
using testing::Elements;
using testing::OnAll;
using testing::Random;
using testing::Rounding;
using testing::TestDevice;
using testing::TestDevices;

double Activated(RowActivation activation, double x) {
  switch (activation) {
    case RowActivation::kNone:
      return x;
    case RowActivation::kGelu:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case RowActivation::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case RowActivation::kRelu:
      return std::max(x, 0.0);
    case RowActivation::kSilu:
      return x / (1 + std::exp(-x));
    case RowActivation::kTanh:
      return std::tanh(x);
    case RowActivation::kQuickGelu:
      return x / (1 + std::exp(-1.702 * x));
  }
  return 0;
}

TEST(DeviceRowsTest, BiasesAndActivationsAreTheirDefinitions) {
  const int rows = 3, columns = 1100;
  OnAll([&](TestDevice& device, DType dtype) {
    const std::vector<float> bias = Random(columns, 1);
    const Elements y(Random(static_cast<size_t>(rows) * columns, 2, 4), dtype);
    const float* on_device = device.Upload(bias);
    for (const auto activation :
         {RowActivation::kNone, RowActivation::kGelu, RowActivation::kGeluTanh,
          RowActivation::kRelu, RowActivation::kSilu, RowActivation::kTanh,
          RowActivation::kQuickGelu}) {
      const BiasRows args = {y.Upload(device), on_device, rows, columns, activation, dtype};
      ASSERT_EQ(device.api().rows.bias(device.stream(), args), 0);
      const std::vector<float> got = Download(device, args.y, y.values.size(), dtype);
      for (size_t i = 0; i < got.size(); ++i) {
        const double expected = Activated(activation, double{y.values[i]} + bias[i % columns]);
        ASSERT_NEAR(got[i], expected, 2e-6 + Rounding(dtype) * std::abs(expected))
            << static_cast<int>(activation) << " of " << y.values[i];
      }
    }
    const WidenRows widen = {
        y.Upload(device), on_device, device.Allocate<float>(y.values.size()), rows, columns, dtype};
    ASSERT_EQ(device.api().rows.widen(device.stream(), widen), 0);
    const std::vector<float> got = device.Download(widen.out, y.values.size());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i], y.values[i] + bias[i % columns]) << i;
    }
  });
}

TEST(DeviceRowsTest, CopiesGoWhereTheListsSay) {
  for (const auto& device : TestDevices()) {
    SCOPED_TRACE(device->name());
    const std::vector<int32_t> in = {0, 1, 10, 11, 20, 21, 30, 31};
    const std::vector<int32_t> out(10, -5), from = {3, -1, 0}, to = {4, 1, 2};
    int32_t* target = device->Upload(out);
    CopyRows args = {
        device->Upload(in), target, device->Upload(from), device->Upload(to), 3, 8, 8, 8};
    ASSERT_EQ(device->api().rows.copy(device->stream(), args), 0);
    EXPECT_EQ(device->Download(target, 10),
              (std::vector<int32_t>{-5, -5, -5, -5, 0, 1, -5, -5, 30, 31}));
    args.to = nullptr;
    ASSERT_EQ(device->api().rows.copy(device->stream(), args), 0);
    EXPECT_EQ(device->Download(target, 6), (std::vector<int32_t>{30, 31, -5, -5, 0, 1}));
    // The first column of every other row.
    args = {args.in, target, nullptr, nullptr, 2, 4, 16, 12};
    ASSERT_EQ(device->api().rows.copy(device->stream(), args), 0);
    EXPECT_EQ(device->Download(target, 6), (std::vector<int32_t>{0, 31, -5, 20, 0, 1}));
  }
}

// Folded scores are those of projected keys: q . (Wk x), and folded values those of Wv means + b.
TEST(DeviceRowsTest, FoldedProductsAreThoseOfProjections) {
  const FoldShape shape = {2, 2, 3, 20, 60};  // 20 channels: more than one tile of 16.
  const int columns = shape.count * shape.heads, tokens = 41;
  const std::vector<float> q = Random(4 * 60, 1), wk = Random(60 * 60, 2), wv = Random(60 * 60, 3),
                           x = Random(static_cast<size_t>(tokens) * 60, 4), bias = Random(60, 5),
                           means = Random(2 * 6 * 60, 6);
  const std::vector<int32_t> begins = {0, 24}, ends = {23, 41}, out_rows = {3, 0, 2, 1};
  for (const auto& device : TestDevices()) {
    SCOPED_TRACE(device->name());
    const RowsApi& api = device->api().rows;
    const FoldKeys keys = {shape, device->Upload(q), device->Upload(wk), 0.5f,
                           device->Allocate<float>(2 * columns * 60)};
    ASSERT_EQ(api.fold_keys(device->stream(), keys), 0);
    const std::vector<float> blank(static_cast<size_t>(tokens) * columns, -9);
    const FoldScores scores = {
        shape, device->Upload(x),    keys.vectors, device->Upload(begins), device->Upload(ends),
        23,    device->Upload(blank)};
    ASSERT_EQ(api.fold_scores(device->stream(), scores), 0);
    const std::vector<float> got = device->Download(scores.scores, blank.size());
    for (int t = 0; t < tokens; ++t) {
      for (int c = 0; c < columns; ++c) {
        const int sequence = t < 24 ? 0 : 1, head = c % 3;
        double expected = 0;
        for (int d = 0; d < 20; ++d) {
          double key = 0;
          for (int i = 0; i < 60; ++i) key += double{wk[(head * 20 + d) * 60 + i]} * x[t * 60 + i];
          expected += 0.5 * q[(sequence * 2 + c / 3) * 60 + head * 20 + d] * key;
        }
        if (t == 23) expected = -9;  // This row belongs to no sequence.
        ASSERT_NEAR(got[t * columns + c], expected, 2e-4 * (1 + std::abs(expected)))
            << t << " " << c;
      }
    }
    const FoldValues values = {shape,
                               device->Upload(means),
                               device->Upload(wv),
                               device->Upload(bias),
                               device->Upload(out_rows),
                               device->Allocate<float>(4 * 60),
                               DType::kFloat32};
    ASSERT_EQ(api.fold_values(device->stream(), values), 0);
    const std::vector<float> out = device->Download(static_cast<float*>(values.out), 4 * 60);
    for (int i = 0; i < 4; ++i) {
      for (int n = 0; n < 60; ++n) {
        double expected = bias[n];
        for (int k = 0; k < 60; ++k)
          expected += double{wv[n * 60 + k]} * means[(i * 3 + n / 20) * 60 + k];
        ASSERT_NEAR(out[out_rows[i] * 60 + n], expected, 1e-4) << i << " " << n;
      }
    }
  }
}

}  // namespace
}  // namespace longview::kernels::cuda
