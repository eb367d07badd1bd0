#include "models/detection/mask_runs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace longview::models {
namespace {

// Pixel by pixel, as the header says.
std::vector<uint32_t> ByDefinition(const std::vector<float>& mask, int side,
                                   const kernels::Box& box, ImageSize picture, float threshold) {
  const auto value = [&](int y, int x) {
    return y < 0 || x < 0 || y >= side || x >= side ? 0.0 : mask[y * side + x];
  };
  std::vector<uint32_t> runs = {0};
  bool inside = false;
  for (int column = 0; column < picture.width; ++column) {
    for (int row = 0; row < picture.height; ++row) {
      const double u = (column + 0.5 - box.x0) / (box.x1 - box.x0) * side - 0.5;
      const double v = (row + 0.5 - box.y0) / (box.y1 - box.y0) * side - 0.5;
      const int x = static_cast<int>(std::floor(u)), y = static_cast<int>(std::floor(v));
      const double a = u - x, b = v - y;
      const double sum = (1 - b) * ((1 - a) * value(y, x) + a * value(y, x + 1)) +
                         b * ((1 - a) * value(y + 1, x) + a * value(y + 1, x + 1));
      if ((sum >= threshold) != inside) {
        runs.push_back(0);
        inside = !inside;
      }
      ++runs.back();
    }
  }
  return runs;
}

int64_t Differing(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b, int64_t pixels) {
  const auto expand = [&](const std::vector<uint32_t>& runs) {
    std::vector<bool> out;
    bool value = false;
    for (const uint32_t run : runs) {
      out.insert(out.end(), run, value);
      value = !value;
    }
    return out;
  };
  const std::vector<bool> x = expand(a), y = expand(b);
  EXPECT_EQ(static_cast<int64_t>(x.size()), pixels);
  int64_t count = 0;
  for (size_t i = 0; i < x.size() && i < y.size(); ++i) count += x[i] != y[i];
  return count;
}

TEST(MaskRunsTest, AgreesPixelByPixel) {
  std::mt19937 random(4);
  std::uniform_real_distribution<float> uniform(0, 1);
  constexpr int kSide = 28;
  int64_t wrong = 0, total = 0;
  for (int i = 0; i < 60; ++i) {
    const ImageSize picture = {20 + i * 3, 150 - i};
    std::vector<float> mask(kSide * kSide);
    for (float& value : mask) value = i % 3 == 0 ? 1.0f : uniform(random);
    kernels::Box box = {uniform(random) * 60, uniform(random) * 15, 0, 0};
    box.x1 = box.x0 + (i % 5 == 0 ? 0.3f : uniform(random) * 90);
    box.y1 = box.y0 + (i % 7 == 0 ? 0.2f : uniform(random) * 200);
    const int64_t pixels = int64_t{picture.height} * picture.width;
    wrong += Differing(MaskRuns(mask, kSide, box, picture, 0.5f),
                       ByDefinition(mask, kSide, box, picture, 0.5f), pixels);
    total += pixels;
  }
  EXPECT_LE(wrong, total / 100'000);
}

TEST(MaskRunsTest, EverythingAndNothing) {
  const std::vector<float> full(4, 1.0f), none(4, 0.0f);
  const kernels::Box wide = {-100, -100, 200, 200};
  EXPECT_EQ(MaskRuns(full, 2, wide, {5, 7}, 0.5f), (std::vector<uint32_t>{0, 35}));
  EXPECT_EQ(MaskRuns(none, 2, wide, {5, 7}, 0.5f), (std::vector<uint32_t>{35}));
  // One pixel in the second column, third row.
  EXPECT_EQ(MaskRuns(full, 2, {1, 2, 2, 3}, {5, 7}, 0.5f), (std::vector<uint32_t>{7, 1, 27}));
}

}  // namespace
}  // namespace longview::models
