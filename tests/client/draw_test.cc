// Pictures with detections on them, dot by dot.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/cli/draw/canvas.h"
#include "client/cli/draw/detections.h"
#include "tests/client/test_folder.h"

namespace longview::client {
namespace {

// One character per pixel: '.' untouched, 'm' tinted by the mask, 'F' frame, caption or its ground,
// 'w' letter.
std::vector<std::string> Drawn(const longview::v1::DetectObjectsResponse& response, int width,
                               int height) {
  const Rgb gray = {100, 100, 100};
  Picture picture(width, height);
  Fill(picture, 0, 0, width, height, gray);
  EXPECT_TRUE(DrawDetections(response, picture).ok());
  std::vector<std::string> rows;
  for (int y = 0; y < height; ++y) {
    std::string& row = rows.emplace_back();
    for (int x = 0; x < width; ++x) {
      const uint8_t* p = picture.at(x, y);
      const Rgb color = {p[0], p[1], p[2]};
      row += color == gray                 ? '.'
             : color == Rgb{255, 255, 255} ? 'w'
             : color == Rgb{20, 110, 190}  ? 'F'
             : color == Rgb{68, 104, 136}  ? 'm'
                                           : '?';
    }
  }
  return rows;
}

TEST(DrawTest, BoxAndLabel) {
  longview::v1::DetectObjectsResponse response;
  auto& found = *response.add_detections();
  found.set_label_id(1);
  found.set_label("T");
  found.set_score(0.5f);
  found.set_x0(2);
  found.set_y0(10);
  found.set_x1(10);
  found.set_y1(15);
  const std::vector<std::string> want = {
      "........................................", "..FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF.",
      "..FwwwwwFFFFFFFFwwwFFFFFFFFwwwwwFFwwwFF.", "..FFFwFFFFFFFFFwFFFwFFFFFFFwFFFFFwFFFwF.",
      "..FFFwFFFFFFFFFwFFwwFFFFFFFwwwwFFwFFwwF.", "..FFFwFFFFFFFFFwFwFwFFFFFFFFFFFwFwFwFwF.",
      "..FFFwFFFFFFFFFwwFFwFFFFFFFFFFFwFwwFFwF.", "..FFFwFFFFFFFFFwFFFwFFwwFFFwFFFwFwFFFwF.",
      "..FFFwFFFFFFFFFFwwwFFFwwFFFFwwwFFFwwwFF.", "..FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF.",
      "..FFFFFFFF..............................", "..F......F..............................",
      "..F......F..............................", "..F......F..............................",
      "..FFFFFFFF..............................", "........................................"};
  EXPECT_EQ(Drawn(response, 40, 16), want);
}

TEST(DrawTest, MaskPixelsAreTinted) {
  longview::v1::DetectObjectsResponse response;
  auto& found = *response.add_detections();
  found.set_label_id(1);
  found.set_label("A");
  found.set_x0(0);
  found.set_y0(12);
  found.set_x1(6);
  found.set_y1(20);
  // 74 pixels outside, 3 inside, the rest outside.
  found.set_mask_rle(R"({"size": [28, 30], "counts": "Z23kg0"})");
  const auto runs = MaskRuns(found.mask_rle(), 30, 28);
  ASSERT_TRUE(runs.ok()) << runs.status();
  EXPECT_EQ(*runs, (std::vector<uint32_t>{74, 3, 763}));
  const std::vector<std::string> rows = Drawn(response, 30, 28);
  // Pixel 74 down the columns is column 2, row 18; its third pixel is under the frame.
  EXPECT_EQ(rows[18].substr(0, 8), "F.m..F..");
  EXPECT_EQ(rows[19].substr(0, 8), "FFFFFF..");
  EXPECT_EQ(rows[20].substr(0, 8), "..m.....");
  EXPECT_EQ(rows[17].substr(0, 8), "F....F..");
}

TEST(DrawTest, MasksThatDoNotFitAreRefused) {
  for (const char* mask :
       {"", "[]", R"({"size": [5, 7]})", R"({"size": [7, 5], "counts": "S1"})",
        R"({"size": [5, 7], "counts": "R1"})", R"({"size": [5, 7], "counts": "~~"})"}) {
    EXPECT_FALSE(MaskRuns(mask, 7, 5).ok()) << mask;
  }
  EXPECT_EQ(*MaskRuns(R"({"size": [5, 7], "counts": "71k0"})", 7, 5),
            (std::vector<uint32_t>{7, 1, 27}));
  EXPECT_EQ((*MaskRuns(R"({"size": [100, 50], "counts": "n?d0`20RV4"})", 50, 100))[3], 20u);
}

TEST(PictureTest, PngComesBack) {
  Picture picture(13, 5);
  for (size_t i = 0; i < picture.rgb.size(); ++i) picture.rgb[i] = static_cast<uint8_t>(i * 7);
  const auto read = ReadPicture(WritePng(picture));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->width, 13);
  EXPECT_EQ(read->rgb, picture.rgb);
  EXPECT_FALSE(ReadPicture("GIF89a").ok());
  EXPECT_FALSE(ReadPicture(WritePng(picture).substr(0, 40)).ok());
}

using PlacesTest = TestFolder;

TEST_F(PlacesTest, OneInputMayNameItsFile) {
  const auto places = PlacesOf({"a/page.jpg"}, (root_ / "out.png").string());
  ASSERT_TRUE(places.ok()) << places.status();
  EXPECT_EQ(places->at("a/page.jpg"), root_ / "out.png");
  EXPECT_FALSE(PlacesOf({"a.jpg", "b.jpg"}, (root_ / "out.png").string()).ok());
}

TEST_F(PlacesTest, InAFolderInputsKeepTheirNames) {
  const auto places =
      PlacesOf({"a/page.jpg", "b/page.png", "-", "a/page.jpg"}, (root_ / "new/out/").string());
  ASSERT_TRUE(places.ok()) << places.status();
  EXPECT_EQ(places->size(), 3);
  EXPECT_EQ(places->at("a/page.jpg"), root_ / "new/out/page.png");
  EXPECT_EQ(places->at("b/page.png"), root_ / "new/out/page-2.png");
  EXPECT_EQ(places->at("-"), root_ / "new/out/input.png");
  EXPECT_TRUE(std::filesystem::is_directory(root_ / "new/out"));
  const auto one = PlacesOf({"x.webp"}, root_.string());
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->at("x.webp"), root_ / "x.png");
}

TEST_F(PlacesTest, AFileIsNoFolder) {
  const std::string file = Write("file", "");
  EXPECT_FALSE(PlacesOf({"a.jpg"}, file + "/").ok());
}

}  // namespace
}  // namespace longview::client
