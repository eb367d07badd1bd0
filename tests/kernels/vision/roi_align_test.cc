#include "kernels/vision/roi_align.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/base/bfloat16.h"

namespace longview::kernels {
namespace {

struct Map {
  Map(int height, int width, int channels, DType dtype) {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    for (int i = 0; i < height * width * channels; ++i) {
      floats.push_back(normal(random));
      halves.push_back(FloatToBFloat16(floats.back()));
    }
    view.dtype = dtype;
    view.data = dtype == DType::kFloat32 ? static_cast<const void*>(floats.data()) : halves.data();
    view.height = height;
    view.width = width;
    view.channels = channels;
    view.scale = 0.25f;
  }
  std::vector<float> Align(const Box& region, int bins) const {
    std::vector<float> out(static_cast<size_t>(bins) * bins * view.channels, NAN);
    std::vector<float> workspace(AlignFloats(view.height, view.width));
    AlignRegion(view, region, bins, workspace, out.data());
    return out;
  }
  std::vector<float> Reference(const Box& region, int bins) const {
    std::vector<float> out(static_cast<size_t>(bins) * bins * view.channels, NAN);
    AlignRegionRef(view, region, bins, out.data());
    return out;
  }
  std::vector<float> floats;
  std::vector<uint16_t> halves;
  PyramidMap view;
};

void ExpectNear(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-5) << i;
}

TEST(RoiAlignTest, AgreesWithTheDefinition) {
  std::mt19937 random(9);
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    for (const int channels : {1, 16, 63, 64, 80}) {
      const Map map(13, 17, channels, dtype);
      std::uniform_real_distribution<float> x(0, 68), y(0, 52);
      for (int i = 0; i < 20; ++i) {
        Box box{x(random), y(random), x(random), y(random)};
        if (box.x0 > box.x1) std::swap(box.x0, box.x1);
        if (box.y0 > box.y1) std::swap(box.y0, box.y1);
        for (const int bins : {7, 14}) ExpectNear(map.Align(box, bins), map.Reference(box, bins));
      }
    }
  }
}

TEST(RoiAlignTest, TheWholeMapAndBeyond) {
  const Map map(6, 5, 8, DType::kFloat32);
  for (const Box& box : {Box{0, 0, 20, 24}, Box{-30, -30, 60, 60}, Box{18, 22, 40, 40}}) {
    ExpectNear(map.Align(box, 7), map.Reference(box, 7));
  }
}

TEST(RoiAlignTest, ARegionWithoutAreaIsZero) {
  const Map map(6, 5, 8, DType::kFloat32);
  EXPECT_EQ(map.Align({7, 7, 7, 7}, 7), std::vector<float>(7 * 7 * 8));
  EXPECT_EQ(map.Align({7, 3, 7, 9}, 7), std::vector<float>(7 * 7 * 8));
}

// A bin of one sample in the middle of four pixels is their mean.
TEST(RoiAlignTest, OneSampleByHand) {
  Map map(2, 2, 1, DType::kFloat32);
  map.floats = {1, 2, 3, 6};
  map.view.data = map.floats.data();
  map.view.scale = 1;
  EXPECT_FLOAT_EQ(map.Align({0.5f, 0.5f, 1.5f, 1.5f}, 1)[0], 3.0f);
}

}  // namespace
}  // namespace longview::kernels
