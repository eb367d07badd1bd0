#include "server/api/infer/mask_rle.h"

#include <gtest/gtest.h>

namespace longview::server {
namespace {

// By pycocotools 2.0: encode(numpy.asfortranarray(mask)) of the pictures in the comments.
TEST(MaskRleTest, IsWhatPycocotoolsWrites) {
  // 5 x 7, all outside; all inside; one pixel at row 2, column 1.
  EXPECT_EQ(CocoRle(std::vector<uint32_t>{35}, 5, 7), R"({"size":[5,7],"counts":"S1"})");
  EXPECT_EQ(CocoRle(std::vector<uint32_t>{0, 35}, 5, 7), R"({"size":[5,7],"counts":"0S1"})");
  EXPECT_EQ(CocoRle(std::vector<uint32_t>{7, 1, 27}, 5, 7), R"({"size":[5,7],"counts":"71k0"})");
  // Rows 10 to 29 of columns 5 to 6 of 100 x 50: the fourth run is written as a difference.
  EXPECT_EQ(CocoRle(std::vector<uint32_t>{510, 20, 80, 20, 4370}, 100, 50),
            R"({"size":[100,50],"counts":"n?d0`20RV4"})");
}

TEST(MaskRleTest, PixelsByRows) {
  std::vector<std::byte> pixels;
  AppendMask(std::vector<uint32_t>{1, 2, 1, 1, 1}, 2, 3, pixels);
  std::vector<int> values;
  for (const std::byte pixel : pixels) values.push_back(std::to_integer<int>(pixel));
  EXPECT_EQ(values, (std::vector<int>{0, 1, 1, 1, 0, 0}));
}

}  // namespace
}  // namespace longview::server
