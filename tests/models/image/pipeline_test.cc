#include "models/image/pipeline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/config/json_reader.h"
#include "tests/models/image/picture_files.h"

namespace longview::models {
namespace {

using nlohmann::json;

TEST(ResizeTest, EveryFilterIsPillowsBitForBit) {
  const auto file = Checkpoint::Open(GoldenPath("/images/expected.safetensors"));
  ASSERT_TRUE(file.ok()) << file.status();
  const Raster photo = RasterOf(*file, "rgb");
  int cases = 0;
  for (const auto& [name, tensor] : file->tensors()) {
    int code, width, height;
    if (std::sscanf(name.c_str(), "resize.%d.%dx%d", &code, &width, &height) != 3) continue;
    const Raster resized = Resized(photo, width, height, static_cast<Resample>(code));
    EXPECT_EQ(LargestStep(resized, RasterOf(*file, name)), 0) << name;
    ++cases;
  }
  EXPECT_EQ(cases, 36);
}

json Detector(int shortest, int longest) {
  return {{"image_processor_type", "ViLDetectionImageProcessor"},
          {"size", {{"shortest_edge", shortest}, {"longest_edge", longest}}},
          {"resample", 2},
          {"do_rescale", false},
          {"image_mean", {123.675, 116.28, 103.53}},
          {"image_std", {58.395, 57.12, 57.375}},
          {"do_pad", true},
          {"size_divisor", 32}};
}

TEST(PipelineTest, DetectionSizesFollowTheReference) {
  const auto description = ReadJsonFile(GoldenPath("/vil_detection/resize_rule/case.json"));
  ASSERT_TRUE(description.ok()) << description.status();
  for (const json& row : (*description)["rows"]) {
    SCOPED_TRACE(row.dump());
    const auto at = [&](int i) { return row[i].get<int>(); };
    const auto pipeline = ReadImagePipeline(Detector(at(0), at(1)), "test");
    ASSERT_TRUE(pipeline.ok()) << pipeline.status();
    const ImageSize given = {at(2), at(3)};
    EXPECT_EQ(pipeline->ResizedSize(given), (ImageSize{std::max(1, at(4)), std::max(1, at(5))}));
    EXPECT_EQ(pipeline->FinalSize(given), (ImageSize{std::max(32, at(6)), std::max(32, at(7))}));
  }
}

// A thin picture whose shorter side becomes long is as large as any other bomb.
TEST(PipelineTest, WhatResizingMakesIsWithinTheLimitToo) {
  ImagePipeline pipeline;
  pipeline.shortest_edge = 800;
  const DecodeLimits limits{1 << 22};
  EXPECT_TRUE(CheckPixelCount("image", pipeline, {60, 90}, limits).ok());
  EXPECT_EQ(
      CheckPixelCount("image", pipeline, {1, 60000}, limits).message(),
      "image: 60000 x 1 resized to 48000000 x 800 is 38400000000 pixels, the limit is 4194304");
  EXPECT_EQ(CheckPixelCount("width", pipeline, {3000, 3000}, limits).message(),
            "width: 3000 x 3000 is 9000000 pixels, the limit is 4194304");
  EXPECT_FALSE(CheckPixelCount("image", pipeline, {1, 4000000}, limits).ok()) << "Sides saturate.";
}

TEST(PipelineTest, PixelsOfAClassifierAreTheReferences) {
  const std::string root = GoldenPath("/vil/pictures_48");
  const auto config = ReadJsonFile(root + "/model/preprocessor_config.json");
  auto pipeline = ReadImagePipeline(*config, "preprocessor_config.json");
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  pipeline->rotate = false;  // The original repository ignores the orientation tag.
  const auto expected = Checkpoint::Open(root + "/expected.safetensors");
  int i = 0;
  for (const auto& path : FilesOf(root + "/images")) {
    SCOPED_TRACE(path.filename());
    const auto prepared = pipeline->Run(ReadBytes(path), {});
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    const TensorView* want = expected->Find("pixel_values." + std::to_string(i++));
    const std::vector<float>& got = prepared->pixels.values;
    ASSERT_EQ(want->bytes, got.size() * sizeof(float));
    // One level of 255 where the fixture's decoder is another version, else rounding.
    const double level = path.extension() == ".jpg" ? 1.01 / 255 / 0.224 : 0;
    for (size_t j = 0; j < got.size(); ++j) {
      float value;
      std::memcpy(&value, want->data + j * sizeof(float), sizeof value);
      ASSERT_NEAR(got[j], value, level + 1e-5) << j;
    }
  }
  EXPECT_EQ(i, 7);
}

TEST(PipelineTest, EveryProcessorTurnsPicturesUnlessItsFileSaysNo) {
  for (const char* type : {"ViLImageProcessor", "ViLDetectionImageProcessor"}) {
    nlohmann::json config = {{"image_processor_type", type}, {"do_resize", false}};
    config["do_normalize"] = false;
    const auto pipeline = ReadImagePipeline(config, "test");
    ASSERT_TRUE(pipeline.ok()) << pipeline.status();
    EXPECT_TRUE(pipeline->rotate) << type;
    config["apply_exif_orientation"] = false;
    EXPECT_FALSE(ReadImagePipeline(config, "test")->rotate) << type;
  }
}

TEST(PipelineTest, PaddingIsZeroAfterNormalisation) {
  const auto pipeline = ReadImagePipeline(Detector(40, 64), "test");
  ASSERT_TRUE(pipeline.ok());
  const PreparedImage prepared = pipeline->Run(Raster(30, 20));
  EXPECT_EQ(prepared.given, (ImageSize{20, 30}));
  EXPECT_EQ(prepared.resized, (ImageSize{40, 60}));
  EXPECT_EQ(prepared.pixels.size, (ImageSize{64, 64}));
  const std::vector<float>& values = prepared.pixels.values;
  EXPECT_FLOAT_EQ(values[0], static_cast<float>(-123.675 / 58.395));
  EXPECT_EQ(values[60], 0);
  EXPECT_EQ(values[40 * 64], 0);
}

json Classifier() {
  return {{"image_processor_type", "ViLImageProcessor"},
          {"size", {{"shortest_edge", 54}}},
          {"do_center_crop", true},
          {"crop_size", {{"height", 48}, {"width", 48}}},
          {"image_mean", {0.5, 0.5, 0.5}},
          {"image_std", {0.5, 0.5, 0.5}}};
}

TEST(PipelineTest, CropOffsetsRoundHalvesToEven) {
  json config = Classifier();
  config["do_normalize"] = false;
  config["do_rescale"] = false;
  for (const auto& [size, offset] : {std::pair{49, 0}, {51, 2}, {53, 2}, {55, 4}, {54, 3}}) {
    config["size"] = {{"height", size}, {"width", size}};
    const auto pipeline = ReadImagePipeline(config, "test");
    ASSERT_TRUE(pipeline.ok()) << pipeline.status();
    Raster picture(size, size);
    for (int x = 0; x < size; ++x) picture.row(offset)[3 * x] = static_cast<uint8_t>(x);
    EXPECT_EQ(pipeline->Run(picture).pixels.values[0], offset) << size;
    EXPECT_EQ(pipeline->Run(picture).pixels.values[47], offset + 47) << size;
  }
}

TEST(PipelineTest, BadConfigurationsAreNamed) {
  const auto message = [](const json& config) {
    return std::string(ReadImagePipeline(config, "p.json").status().message());
  };
  const auto with = [](const char* key, json value) {
    json config = Classifier();
    config[key] = std::move(value);
    return config;
  };
  EXPECT_TRUE(ReadImagePipeline(Classifier(), "p.json").ok());
  for (const auto& [key, value] :
       std::vector<std::pair<const char*, json>>{{"image_processor_type", "ViTImageProcessor"},
                                                 {"resample", 9},
                                                 {"image_std", {0.5, 0, 0.5}},
                                                 {"image_mean", {0.5, 0.5}},
                                                 {"crop_size", {{"height", 99}, {"width", 48}}},
                                                 {"rescale_factor", 0},
                                                 {"do_convert_rgb", false},
                                                 {"do_flip", true}}) {
    const std::string text = message(with(key, value));
    EXPECT_NE(text.find(key), std::string::npos) << key << ": " << text;
    EXPECT_EQ(text.find("p.json"), 0u) << text;
  }
  EXPECT_NE(message(with("size", {{"shortest_edge", 0}})).find("shortest_edge"), std::string::npos);
}

}  // namespace
}  // namespace longview::models
