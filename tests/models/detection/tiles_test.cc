#include "models/detection/tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>

#include "kernels/vision/nms.h"

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

// The definition: whoever is better or whole is compared with all that follow.
std::vector<FoundBox> JoinByDefinition(std::vector<TileDetection> detections, float overlap,
                                       int limit) {
  std::ranges::stable_sort(detections, [](const TileDetection& a, const TileDetection& b) {
    return a.cut != b.cut ? !a.cut : a.found.score > b.found.score;
  });
  const auto covered = [](const kernels::Box& box, const kernels::Box& cover) {
    const float width = std::min(box.x1, cover.x1) - std::max(box.x0, cover.x0);
    const float height = std::min(box.y1, cover.y1) - std::max(box.y0, cover.y0);
    const float area = (box.x1 - box.x0) * (box.y1 - box.y0);
    return width > 0 && height > 0 ? width * height / area : 0;
  };
  std::vector<FoundBox> kept;
  for (const TileDetection& detection : detections) {
    const FoundBox& found = detection.found;
    const bool again = std::ranges::any_of(kept, [&](const FoundBox& other) {
      return other.label == found.label &&
             (kernels::Overlap(other.box, found.box) > overlap ||
              (detection.cut && covered(found.box, other.box) > overlap));
    });
    if (!again) kept.push_back(found);
  }
  std::ranges::stable_sort(kept, std::ranges::greater(), &FoundBox::score);
  if (static_cast<int>(kept.size()) > limit) kept.resize(static_cast<size_t>(limit));
  return kept;
}

std::vector<TileDetection> RandomDetections(size_t count, std::mt19937& random) {
  std::uniform_real_distribution<float> place(0, 200), side(5, 60);
  std::vector<TileDetection> detections;
  for (size_t i = 0; i < count; ++i) {
    const float x = place(random), y = place(random);
    const float score = static_cast<float>(random() % 30 + 1) / 31;  // Many equal ones.
    detections.push_back(Found({x, y, x + side(random), y + side(random)}, score,
                               static_cast<int>(random() % 3), random() % 3 == 0));
  }
  return detections;
}

void ExpectSameBoxes(const std::vector<FoundBox>& got, const std::vector<FoundBox>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].score, want[i].score) << i;
    EXPECT_EQ(got[i].label, want[i].label) << i;
    EXPECT_EQ(std::memcmp(&got[i].box, &want[i].box, sizeof(kernels::Box)), 0) << i;
  }
}

TEST(TilesTest, JoinsAsTheDefinitionDoes) {
  std::mt19937 random(4);
  for (int round = 0; round < 100; ++round) {
    const std::vector<TileDetection> detections = RandomDetections(random() % 300, random);
    for (const int limit : {1, 3, 20, 1000}) {
      ExpectSameBoxes(JoinTiles(detections, 0.5f, limit),
                      JoinByDefinition(detections, 0.5f, limit));
    }
  }
}

TEST(TilesTest, TheBestStayAndEqualScoresKeepTheirOrder) {
  std::mt19937 random(5);
  std::vector<TileDetection> detections = RandomDetections(500, random);
  std::vector<TileDetection> few = detections;
  LeaveBest(500, few);
  ASSERT_EQ(few.size(), 500u);
  EXPECT_EQ(few[7].found.score, detections[7].found.score);  // None left out: the order stays.
  LeaveBest(60, few);
  ASSERT_EQ(few.size(), 60u);
  std::ranges::stable_sort(detections, std::ranges::greater(),
                           [](const TileDetection& d) { return d.found.score; });
  for (size_t i = 0; i < few.size(); ++i) {
    EXPECT_EQ(few[i].found.score, detections[i].found.score);
    EXPECT_EQ(few[i].found.box.x0, detections[i].found.box.x0);
  }
}

// 256 tiles of a thousand detections each, side by side: comparing each with all takes minutes.
TEST(TilesTest, AFullPictureIsJoinedAtOnce) {
  std::vector<TileDetection> all;
  for (int tile = 0; tile < kMostTiles; ++tile) {
    for (int i = 0; i < 1000; ++i) {
      const auto x = static_cast<float>(2 * i), y = static_cast<float>(2 * tile);
      all.push_back(Found({x, y, x + 1, y + 1}, 0.9f, 0, i % 50 == 0));
    }
    LeaveBest(kMostTileDetections, all);
  }
  EXPECT_EQ(JoinTiles(std::move(all), 0.5f, 1000).size(), 1000u);
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
