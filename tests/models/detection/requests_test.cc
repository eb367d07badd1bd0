// Requests to a detector through LoadModel: thresholds, limits, tiles, mistakes.
#include <cmath>

#include "tests/models/detection/golden_case.h"

namespace longview::models {
namespace {

class DetectionRequestsTest : public testing::Test {
 protected:
  DetectionRequestsTest() : golden_("maskrcnn_small"), model_(golden_.Load()) {}

  std::vector<Detection> Detect(const Request& request) {
    return RunTogether(*model_, {request}).at(0).detections;
  }
  // A picture by its size alone.
  static Request Outline(int width, int height) {
    Request request;
    request.task = Task::kObjectDetection;
    request.pixel_values = PixelInput{height, width, {}, true};
    return request;
  }
  std::string Refusal(const Request& request) {
    const auto item = model_->Prepare(request);
    return item.ok() ? "" : std::string(item.status().message());
  }

  DetectionCase golden_;
  std::unique_ptr<Model> model_;
};

TEST_F(DetectionRequestsTest, ThresholdAndLimitCutTheSameList) {
  Request request = golden_.RequestOf(0);
  request.masks = false;
  const std::vector<Detection> all = Detect(request);
  ASSERT_GT(all.size(), 4u);
  request.max_detections = 3;
  const std::vector<Detection> three = Detect(request);
  ASSERT_EQ(three.size(), 3u);
  for (size_t i = 0; i < 3; ++i) ExpectSameBits(three[i], all[i]);
  request.max_detections = 0;
  request.score_threshold = all[2].score;  // Only what lies above it.
  EXPECT_EQ(Detect(request).size(), 2u);
  request.score_threshold = 1.0f;
  EXPECT_TRUE(Detect(request).empty());
  request.score_threshold = 0.0f;
  request.max_detections = 1000;
  EXPECT_GT(Detect(request).size(), all.size());
}

TEST_F(DetectionRequestsTest, PixelValuesAreTheNetworksInput) {
  const std::vector<double> values = golden_.Values("pixel_values.0");
  Request request;
  request.task = Task::kObjectDetection;
  PixelInput& pixels = request.pixel_values.emplace();
  const TensorView* tensor = golden_.expected.Find("pixel_values.0");
  pixels.height = static_cast<int>(tensor->shape[1]);
  pixels.width = static_cast<int>(tensor->shape[2]);
  pixels.values.assign(values.begin(), values.end());
  EXPECT_FALSE(Detect(request).empty());
  // A side of its own is padded alone.
  pixels.height = 40;
  pixels.values.assign(size_t{3} * 40 * pixels.width, 0.25f);
  for (const Detection& found : Detect(request)) EXPECT_LE(found.y1, 40.0f);
}

TEST_F(DetectionRequestsTest, TilesCoverThePictureAndAreDeterministic) {
  Request request = golden_.RequestOf(0);
  request.tiles = TileGrid{80, 20};
  const std::vector<Detection> first = Detect(request), second = Detect(request);
  ASSERT_EQ(first.size(), second.size());
  ASSERT_FALSE(first.empty());
  const std::vector<Answer> answers = RunTogether(*model_, {request});
  for (size_t i = 0; i < first.size(); ++i) {
    ExpectSameBits(first[i], second[i]);
    EXPECT_GE(first[i].x0, 0);
    EXPECT_LE(first[i].x1, 151);
    EXPECT_LE(first[i].y1, 90);
    Pixels(first[i].mask_runs, 90, 151);  // Runs add up to the whole picture.
    EXPECT_GE(first[i > 0 ? i - 1 : 0].score, first[i].score);
  }
  // One tile as large as the picture is the picture.
  request.tiles = TileGrid{1000, 0};
  const std::vector<Detection> one = Detect(request);
  request.tiles.reset();
  const std::vector<Detection> whole = Detect(request);
  ASSERT_EQ(one.size(), whole.size());
  for (size_t i = 0; i < one.size(); ++i) ExpectSameBits(one[i], whole[i]);
}

TEST_F(DetectionRequestsTest, CostsAreKnownBefore) {
  Request request = golden_.RequestOf(0);
  const auto whole = model_->Prepare(request);
  request.masks = false;
  const auto boxes = model_->Prepare(request);
  request.tiles = TileGrid{80, 20};
  const auto tiles = model_->Prepare(request);
  ASSERT_TRUE(whole.ok() && boxes.ok() && tiles.ok());
  EXPECT_GT((*boxes)->cost().workspace_bytes, 0);
  EXPECT_GE((*whole)->cost().workspace_bytes, (*boxes)->cost().workspace_bytes);
  EXPECT_GT((*whole)->cost().seconds, (*boxes)->cost().seconds);
  EXPECT_GT((*tiles)->cost().seconds, (*boxes)->cost().seconds);
}

// Every detection of every tile has its mask until the last tile is done.
TEST_F(DetectionRequestsTest, WhatTilesFindIsCounted) {
  Request request = golden_.RequestOf(0);
  request.tiles = TileGrid{12, 4};  // 19 x 11.
  const auto bytes = [&](int detections, bool masks) {
    request.max_detections = detections;
    request.masks = masks;
    const auto item = model_->Prepare(request);
    EXPECT_TRUE(item.ok()) << item.status();
    return (*item)->cost().workspace_bytes;
  };
  constexpr double kMaskBytes = 28 * 28 * sizeof(float), kFound = 8192;
  EXPECT_GE(bytes(1000, true) - bytes(1, true), (kFound - 209) * kMaskBytes);
  EXPECT_LT(bytes(1000, false) - bytes(1, false), kFound * kMaskBytes / 10);
  request.tiles.reset();
  EXPECT_GE(bytes(1000, true) - bytes(1, true), 999 * kMaskBytes);
}

TEST_F(DetectionRequestsTest, ASizeCostsWhatTheItemDoes) {
  for (size_t i = 0; i < golden_.pictures.size(); ++i) {
    Request request = golden_.RequestOf(i);
    request.masks = false;
    const auto item = model_->Prepare(request);
    ASSERT_TRUE(item.ok()) << item.status();
    const ItemUsage& usage = (*item)->usage();
    const auto estimate = model_->Prepare(Outline(usage.width, usage.height));
    ASSERT_TRUE(estimate.ok()) << estimate.status();
    EXPECT_EQ((*estimate)->cost().workspace_bytes, (*item)->cost().workspace_bytes);
    EXPECT_EQ((*estimate)->cost().seconds, (*item)->cost().seconds);
  }
  EXPECT_EQ(Refusal(Outline(9000, 8000)),
            "width: 9000 x 8000 is 72000000 pixels, the limit is 67108864");
}

TEST_F(DetectionRequestsTest, AnOutlineNeverRuns) {
  const auto item = *model_->Prepare(Outline(64, 64));
  const Item* const items[] = {item.get()};
  const std::unique_ptr<models::Run> run = model_->Begin(items);
  EXPECT_FALSE(run->Advance());
  EXPECT_EQ(run->Take(0).status().code(), absl::StatusCode::kInternal);
}

TEST_F(DetectionRequestsTest, DroppedItemsLeaveTheOthersAlone) {
  const auto first = *model_->Prepare(golden_.RequestOf(0));
  const auto second = *model_->Prepare(golden_.RequestOf(1));
  const Item* const items[] = {first.get(), second.get()};
  const std::vector<Detection> alone = Detect(golden_.RequestOf(1));
  for (const int steps : {0, 1, 5, 14}) {
    const std::unique_ptr<models::Run> run = model_->Begin(items);
    for (int i = 0; i < steps; ++i) run->Advance();
    run->Drop(0);
    while (run->Advance()) {
    }
    const auto answer = run->Take(1);
    ASSERT_TRUE(answer.ok()) << answer.status();
    ASSERT_EQ(answer->detections.size(), alone.size());
    for (size_t i = 0; i < alone.size(); ++i) ExpectSameBits(answer->detections[i], alone[i]);
    EXPECT_FALSE(run->Take(0).ok());
  }
}

TEST_F(DetectionRequestsTest, MistakesAreNamed) {
  const Request good = golden_.RequestOf(0);
  Request request = good;
  request.score_threshold = 1.5f;
  EXPECT_NE(Refusal(request).find("score_threshold: 1.5"), std::string::npos);
  request.score_threshold = NAN;
  EXPECT_NE(Refusal(request).find("score_threshold"), std::string::npos);
  request = good;
  request.max_detections = 1001;
  EXPECT_NE(Refusal(request).find("max_detections: 1001"), std::string::npos);
  request = good;
  request.tiles = TileGrid{32, 32};
  EXPECT_NE(Refusal(request).find("tile.overlap: 32"), std::string::npos);
  request.tiles = TileGrid{1, 0};
  EXPECT_NE(Refusal(request).find("13590 tiles"), std::string::npos);
  request = good;
  request.tensors = {"features.5"};
  EXPECT_NE(Refusal(request).find("features.5"), std::string::npos);
  request = good;
  request.text = "a";
  EXPECT_NE(Refusal(request).find("text"), std::string::npos);
  request = good;
  request.task = Task::kImageClassification;
  EXPECT_EQ(model_->Prepare(request).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(RetinaNetRequestsTest, MasksAreRefused) {
  const DetectionCase golden("retinanet_two_sizes");
  Request request = golden.RequestOf(0);
  request.masks = true;
  const auto item = golden.Load()->Prepare(request);
  EXPECT_NE(std::string(item.status().message()).find("masks"), std::string::npos);
}

TEST(PositionsTest, APictureBeyondThemIsRefusedBySize) {
  const DetectionCase golden("retinanet_ape_crop");
  Request request;
  request.task = Task::kObjectDetection;
  request.pixel_values = PixelInput{160, 128, std::vector<float>(3 * 160 * 128)};
  const auto item = golden.Load()->Prepare(request);
  EXPECT_NE(std::string(item.status().message()).find("160 x 128"), std::string::npos);
}

}  // namespace
}  // namespace longview::models
