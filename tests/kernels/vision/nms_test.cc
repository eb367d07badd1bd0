#include "kernels/vision/nms.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace longview::kernels {
namespace {

std::vector<int32_t> Fast(const std::vector<Box>& boxes, float threshold) {
  std::vector<int32_t> kept(boxes.size());
  std::vector<float> workspace(SuppressionFloats(boxes.size()));
  kept.resize(SuppressOverlaps(boxes, threshold, kept, workspace));
  return kept;
}

std::vector<int32_t> ByDefinition(const std::vector<Box>& boxes, float threshold) {
  std::vector<int32_t> kept(boxes.size());
  kept.resize(SuppressOverlapsRef(boxes, threshold, kept));
  return kept;
}

TEST(NmsTest, AgreesWithTheDefinition) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> place(-20, 100), side(0, 40);
  for (const size_t count : {0u, 1u, 2u, 15u, 16u, 17u, 100u, 777u}) {
    std::vector<Box> boxes(count);
    for (Box& box : boxes) {
      box.x0 = place(random);
      box.y0 = place(random);
      box.x1 = box.x0 + side(random);
      box.y1 = box.y0 + side(random);
    }
    for (const float threshold : {0.0f, 0.3f, 0.5f, 0.7f, 1.0f}) {
      EXPECT_EQ(Fast(boxes, threshold), ByDefinition(boxes, threshold)) << count << threshold;
    }
  }
}

TEST(NmsTest, ExactlyTheThresholdStays) {
  // Intersection 1, union 2.
  const std::vector<Box> boxes = {{0, 0, 2, 1}, {0, 0, 1, 1}};
  EXPECT_EQ(Fast(boxes, 0.5f), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(Fast(boxes, 0.49f), (std::vector<int32_t>{0}));
}

TEST(NmsTest, BoxesWithoutAreaLeaveEachOtherAlone) {
  const std::vector<Box> boxes(20, Box{1, 1, 1, 5});
  EXPECT_EQ(Fast(boxes, 0.0f).size(), boxes.size());
}

TEST(NmsTest, ASuppressedBoxSuppressesNobody) {
  // Each overlaps its neighbours by half of itself: IoU 1/3.
  const std::vector<Box> boxes = {{0, 0, 2, 1}, {1, 0, 3, 1}, {2, 0, 4, 1}};
  EXPECT_EQ(Fast(boxes, 0.3f), (std::vector<int32_t>{0, 2}));
}

}  // namespace
}  // namespace longview::kernels
