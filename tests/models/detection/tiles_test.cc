#include "models/detection/tiles.h"

#include <gtest/gtest.h>

namespace longview::models {
namespace {

TEST(TilesTest, CoverEveryPixelAndOverlapEnough) {
  for (const ImageSize picture : {ImageSize{1000, 1000}, {1001, 2999}, {300, 5000}, {64, 64}}) {
    for (const TileGrid grid : {TileGrid{512, 64}, {600, 0}, {1000, 500}}) {
      const auto tiles = PlanTiles(picture, grid);
      ASSERT_TRUE(tiles.ok()) << tiles.status();
      int right = 0, bottom = 0;
      for (const Tile& tile : *tiles) {
        EXPECT_LE(tile.size.width, grid.size);
        if (tile.x == 0) right = 0;
        EXPECT_LE(tile.x, right);
        EXPECT_TRUE(tile.x == 0 || right - tile.x >= grid.overlap);
        right = tile.x + tile.size.width;
        EXPECT_TRUE(tile.y == 0 || tile.x > 0 || bottom - tile.y >= grid.overlap);
        if (right == picture.width) bottom = tile.y + tile.size.height;
      }
      EXPECT_EQ(right, picture.width);
      EXPECT_EQ(bottom, picture.height);
    }
  }
}

TileDetection Found(kernels::Box box, float score, int label, bool cut) {
  return {{box, score, label, {}}, cut};
}

TEST(TilesTest, AWholeObjectReplacesItsCutPieces) {
  // An object of 100 pixels; the left tile sees 60 of them, with more confidence.
  const auto kept = JoinTiles(
      {Found({450, 10, 510, 60}, 0.9f, 1, true), Found({450, 10, 550, 60}, 0.6f, 1, false),
       Found({450, 10, 510, 60}, 0.5f, 2, true)},
      0.5f, 10);
  ASSERT_EQ(kept.size(), 2u);  // Another class is another object.
  EXPECT_FLOAT_EQ(kept[0].score, 0.6f);
  EXPECT_EQ(kept[1].label, 2);
}

TEST(TilesTest, TheSameObjectInTwoTilesIsOne) {
  const auto kept =
      JoinTiles({Found({0, 0, 50, 50}, 0.6f, 0, false), Found({1, 1, 51, 50}, 0.8f, 0, false),
                 Found({100, 0, 150, 50}, 0.7f, 0, false)},
                0.5f, 10);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_FLOAT_EQ(kept[0].score, 0.8f);
  EXPECT_EQ(JoinTiles({Found({0, 0, 5, 5}, 0.6f, 0, false), Found({9, 9, 19, 19}, 0.7f, 0, true)},
                      0.5f, 1)[0]
                .score,
            0.7f);
}

TEST(TilesTest, OnlyInnerSidesCut) {
  const ImageSize picture = {1000, 2000};
  const Tile left = {0, 0, {1000, 1000}};
  EXPECT_FALSE(IsCut({0, 0, 500, 1000}, left, picture));
  EXPECT_TRUE(IsCut({900, 0, 999, 100}, left, picture));
  EXPECT_FALSE(IsCut({900, 0, 970, 100}, left, picture));
  EXPECT_TRUE(IsCut({1003, 0, 1100, 100}, {1000, 0, {1000, 1000}}, picture));
}

}  // namespace
}  // namespace longview::models
