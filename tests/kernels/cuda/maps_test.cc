// Kernels of feature maps against loops over their definitions, in both orders of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/kernels/cuda/support/row_values.h"

namespace longview::kernels::cuda {
namespace {

using testing::Download;
using testing::Elements;
using testing::Normed;
using testing::OnAll;
using testing::Random;
using testing::TestDevice;
using testing::TestDevices;

// Values as a device holds them in T.
std::vector<float> Rounded(const std::vector<float>& values, DType dtype) {
  return Elements(values, dtype).values;
}

void* Upload(TestDevice& device, const std::vector<float>& values, DType dtype) {
  return Elements(values, dtype).Upload(device);
}

void ExpectNear(const std::vector<float>& got, const std::vector<double>& want, DType dtype) {
  ASSERT_EQ(got.size(), want.size());
  const double rounding = 2 * testing::Rounding(dtype);
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], 3e-5 + rounding * std::abs(want[i])) << i;
  }
}

TEST(DeviceMapsTest, PatchesAreSquaresOfPixels) {
  struct Picture {
    int height, width;
  };
  struct Kernel {
    int side, stride, padding;
    int more;  // Zeros behind a row.
  };
  // Whole patches, a rest at either border, one patch, none; patches that overlap, with a border.
  const std::vector<Picture> pictures = {{8, 12}, {11, 9}, {4, 7}, {3, 40}, {64, 60}};
  for (const auto& [side, stride, padding, more] :
       {Kernel{1, 1, 0, 0}, {4, 4, 0, 0}, {7, 4, 2, 13}, {3, 2, 1, 1}}) {
    const int channels = side == 1 ? 2 : 3;
    const auto places = [&](int length) {
      return std::max(0, (length + 2 * padding - side) / stride + 1);
    };
    std::vector<PixelImage> images;
    int64_t pixels = 0, patches = 0, most = 0;
    for (const Picture& picture : pictures) {
      const int rows = places(picture.height), columns = places(picture.width);
      images.push_back({pixels, patches, picture.height, picture.width, rows, columns});
      pixels += int64_t{channels} * picture.height * picture.width;
      patches += int64_t{rows} * columns;
      most = std::max(most, int64_t{rows} * columns);
    }
    const int64_t columns = int64_t{channels} * side * side + more;
    OnAll([&](TestDevice& device, DType dtype) {
      const std::vector<float> values = Random(pixels, 1);
      const PixelPatches args = {device.Upload(values),
                                 device.Upload(images),
                                 static_cast<int32_t>(images.size()),
                                 most,
                                 channels,
                                 side,
                                 stride,
                                 padding,
                                 static_cast<int32_t>(columns),
                                 device.Allocate<float>(patches * columns),
                                 dtype};
      ASSERT_EQ(device.api().maps.patches(device.stream(), args), 0);
      std::vector<float> expected;
      for (const PixelImage& image : images) {
        for (int row = 0; row < image.rows; ++row) {
          for (int column = 0; column < image.columns; ++column) {
            for (int c = 0; c < channels; ++c) {
              for (int y = 0; y < side; ++y) {
                for (int x = 0; x < side; ++x) {
                  const int down = row * stride + y - padding;
                  const int across = column * stride + x - padding;
                  const bool inside =
                      down >= 0 && down < image.height && across >= 0 && across < image.width;
                  const int64_t line = image.pixel0 + (c * image.height + down) * image.width;
                  expected.push_back(inside ? values[line + across] : 0);
                }
              }
            }
            expected.insert(expected.end(), static_cast<size_t>(more), 0.0f);
          }
        }
      }
      EXPECT_EQ(Download(device, args.out, expected.size(), dtype), Rounded(expected, dtype));
    });
  }
}

TEST(DeviceMapsTest, TapsAreRowsAndZeros) {
  const std::vector<int32_t> from = {4, -1, 0, 4, 2, -1, 1};
  for (const int width : {1, 96, 1100}) {
    OnAll([&](TestDevice& device, DType dtype) {
      const std::vector<float> x = Random(5 * width, 2);
      const MapTaps args = {device.Upload(x),
                            device.Upload(from),
                            device.Allocate<float>(from.size() * width),
                            static_cast<int64_t>(from.size()),
                            width,
                            dtype};
      ASSERT_EQ(device.api().maps.taps(device.stream(), args), 0);
      std::vector<float> expected;
      for (const int32_t row : from) {
        for (int i = 0; i < width; ++i) expected.push_back(row < 0 ? 0 : x[row * width + i]);
      }
      EXPECT_EQ(Download(device, args.out, expected.size(), dtype), Rounded(expected, dtype));
    });
  }
}

// Nine taps, some, none but the bias, and a row as it is.
TEST(DeviceMapsTest, DepthwiseRowsAreWeightedSumsOfTheirNeighbours) {
  constexpr int kTaps = DepthwiseRows::kTaps;
  std::vector<int32_t> from(4 * kTaps, -1);
  for (int t = 0; t < kTaps; ++t) from[t] = (5 * t + 2) % 7;
  from[kTaps + 3] = 6;
  from[kTaps + 4] = 1;
  std::fill_n(from.begin() + 3 * kTaps, kTaps, 5);
  from[3 * kTaps] = DepthwiseRows::kAsItIs;
  for (const int width : {1, 96, 1100}) {
    OnAll([&](TestDevice& device, DType dtype) {
      const std::vector<float> x = Rounded(Random(7 * width, 1), dtype);
      const std::vector<float> taps = Random(kTaps * width, 2), bias = Random(width, 3);
      const DepthwiseRows args = {Upload(device, x, dtype),
                                  device.Upload(from),
                                  device.Upload(taps),
                                  device.Upload(bias),
                                  device.Allocate<float>(4 * width),
                                  4,
                                  width,
                                  dtype};
      ASSERT_EQ(device.api().maps.depthwise(device.stream(), args), 0);
      std::vector<double> expected;
      for (int row = 0; row < 4; ++row) {
        for (int i = 0; i < width; ++i) {
          double sum = bias[i];
          for (int t = 0; t < kTaps; ++t) {
            const int32_t at = from[row * kTaps + t];
            if (at >= 0) sum += double{taps[t * width + i]} * x[at * width + i];
          }
          expected.push_back(row == 3 ? x[5 * width + i] : sum);
        }
      }
      ExpectNear(Download(device, args.out, expected.size(), dtype), expected, dtype);
    });
  }
}

class MapWidthsTest : public ::testing::TestWithParam<int> {};

// With and without norm and positions; rows that no token has stay as they are.
TEST_P(MapWidthsTest, TokensGoToTheirPlaces) {
  const int width = GetParam(), half = width / 2;
  const std::vector<int32_t> rows = {6, 0, 3, 5}, down = {0, 2, 2, 1}, across = {4, 4, 0, 3};
  OnAll([&](TestDevice& device, DType dtype) {
    const std::vector<float> y = Rounded(Random(4 * width, 1), dtype), bias = Random(width, 2);
    const std::vector<float> gamma = Random(width, 3), beta = Random(width, 4);
    const std::vector<float> columns = Random(3 * half, 5), lines = Random(5 * half, 6);
    const std::vector<float> before = Random(7 * width, 7);
    for (const bool norm : {true, false}) {
      for (const bool positions : {true, false}) {
        MapTokens args = {};
        args.y = Upload(device, y, dtype);
        args.bias = device.Upload(bias);
        if (norm) args.norm = {device.Upload(gamma), device.Upload(beta), 1e-6f};
        args.rows = device.Upload(rows);
        if (positions) {
          args.down = device.Upload(columns);
          args.across = device.Upload(lines);
          args.down_rows = device.Upload(down);
          args.across_rows = device.Upload(across);
        }
        args.x = device.Upload(before);
        args.tokens = 4;
        args.width = width;
        args.dtype = dtype;
        ASSERT_EQ(device.api().maps.tokens(device.stream(), args), 0);
        std::vector<double> expected(before.begin(), before.end());
        for (size_t t = 0; t < rows.size(); ++t) {
          std::vector<double> token;
          for (int i = 0; i < width; ++i) token.push_back(double{y[t * width + i]} + bias[i]);
          if (norm) token = Normed(token, gamma, beta, 1e-6);
          for (int i = 0; i < width && positions; ++i) {
            token[i] += i < half ? columns[down[t] * half + i] : lines[across[t] * half + i - half];
          }
          std::copy(token.begin(), token.end(), expected.begin() + int64_t{rows[t]} * width);
        }
        ExpectNear(device.Download(args.x, before.size()), expected, DType::kFloat32);
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Widths, MapWidthsTest, ::testing::Values(2, 48, 130, 768));

TEST(DeviceMapsTest, BiasTablesAreTheLearnedRows) {
  const int heads = 3, learned = 50;
  const int64_t count = 2100, stride = 2500;
  std::mt19937 random(4);
  std::vector<int32_t> entries(count);
  for (int32_t& entry : entries) entry = static_cast<int32_t>(random() % learned);
  for (const auto& device : TestDevices()) {
    SCOPED_TRACE(device->name());
    const std::vector<float> table = Random(heads * learned, 1);
    std::vector<float> expected(heads * stride, -7);
    const BiasTable args = {
        device->Upload(table),          learned, device->Upload(entries), count, heads,
        device->Upload(expected) + 100, stride};
    ASSERT_EQ(device->api().maps.bias_table(device->stream(), args), 0);
    for (int h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < count; ++i) {
        expected[h * stride + 100 + i] = table[h * learned + entries[i]];
      }
    }
    EXPECT_EQ(device->Download(args.out - 100, expected.size()), expected);
  }
}

TEST(DeviceMapsTest, PositionSumsAreProductsWithTheTransposedWeight) {
  const int tokens = 37, stride = 300, out_stride = 280;
  const std::vector<int32_t> begins = {40, 0, 90};
  for (const int columns : {1, 8, 13}) {
    for (const int width : {1, 130}) {
      OnAll([&](TestDevice& device, DType dtype) {
        const std::vector<float> rows = Rounded(Random(130 * stride, 1), dtype);
        const std::vector<float> weight = Random(tokens * columns, 2);
        const size_t outs = begins.size() * columns * out_stride;
        std::vector<double> expected(outs, -3);
        const PositionSums args = {Upload(device, rows, dtype),
                                   stride,
                                   device.Upload(weight),
                                   device.Upload(begins),
                                   static_cast<int32_t>(begins.size()),
                                   tokens,
                                   columns,
                                   width,
                                   Upload(device, std::vector<float>(outs, -3), dtype),
                                   out_stride,
                                   dtype};
        ASSERT_EQ(device.api().maps.position_sums(device.stream(), args), 0);
        for (size_t image = 0; image < begins.size(); ++image) {
          for (int j = 0; j < columns; ++j) {
            for (int c = 0; c < width; ++c) {
              double& sum = expected[(image * columns + j) * out_stride + c];
              sum = 0;
              for (int n = 0; n < tokens; ++n) {
                sum += double{weight[n * columns + j]} * rows[(begins[image] + n) * stride + c];
              }
            }
          }
        }
        ExpectNear(Download(device, args.out, outs, dtype), expected, dtype);
      });
    }
  }
}

TEST(DeviceMapsTest, ColumnNormsAreOfOneImage) {
  const std::vector<int32_t> begins = {0, 1, 40, 49}, out_begins = {12, 13, 0};
  for (const int width : {1, 129, 384}) {
    OnAll([&](TestDevice& device, DType dtype) {
      const std::vector<float> in = Rounded(Random(49 * width, 1), dtype);
      const size_t outs = size_t{60} * width;
      ColumnNorms args = {Upload(device, in, dtype),
                          device.Upload(begins),
                          device.Upload(out_begins),
                          3,
                          width,
                          1e-5f,
                          Upload(device, std::vector<float>(outs, 5), dtype),
                          dtype};
      // Rows of the first image are where the second's would end: 13 + 39 = 52.
      std::vector<double> expected(outs, 5);
      ASSERT_EQ(device.api().maps.column_norms(device.stream(), args), 0);
      for (size_t image = 0; image < out_begins.size(); ++image) {
        const int rows = begins[image + 1] - begins[image];
        for (int c = 0; c < width; ++c) {
          std::vector<double> column;
          for (int r = 0; r < rows; ++r) column.push_back(in[(begins[image] + r) * width + c]);
          const std::vector<float> ones(rows, 1), zeros(rows, 0);
          column = Normed(column, ones, zeros, 1e-5);
          for (int r = 0; r < rows; ++r) expected[(out_begins[image] + r) * width + c] = column[r];
        }
      }
      ExpectNear(Download(device, args.out, outs, dtype), expected, dtype);
    });
  }
}

TEST(DeviceMapsTest, PlanesAreRowsTurned) {
  std::vector<int32_t> rows(180);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int32_t>(i);
  std::shuffle(rows.begin(), rows.end(), std::mt19937(3));
  for (const int width : {1, 33, 96}) {
    // One token, a tile and a bit, a map that is not wanted between them.
    const std::vector<PlaneImage> images = {
        {0, 5, 1}, {1, 5 + width, 33}, {80, 40 + int64_t{34} * width, 100}};
    for (const auto& device : TestDevices()) {
      SCOPED_TRACE(device->name());
      const std::vector<float> x = Random(180 * width, 1);
      std::vector<float> expected(images[2].out0 + 100 * width, -2);
      const MapPlanes args = {device->Upload(x),
                              device->Upload(rows),
                              device->Upload(images),
                              static_cast<int32_t>(images.size()),
                              100,
                              width,
                              device->Upload(expected)};
      ASSERT_EQ(device->api().maps.planes(device->stream(), args), 0);
      for (const PlaneImage& image : images) {
        for (int c = 0; c < width; ++c) {
          for (int64_t t = 0; t < image.tokens; ++t) {
            expected[image.out0 + c * image.tokens + t] =
                x[int64_t{rows[image.token0 + t]} * width + c];
          }
        }
      }
      EXPECT_EQ(device->Download(args.out, expected.size()), expected);
    }
  }
}

}  // namespace
}  // namespace longview::kernels::cuda
