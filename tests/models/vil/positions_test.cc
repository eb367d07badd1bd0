// Numbers that belong to places of a map: stored index formulas, interpolation.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "models/config/json_reader.h"
#include "models/vil/map_weights.h"
#include "models/vil/stored_bias.h"
#include "tests/models/image/picture_files.h"
#include "tests/models/vision/image_case.h"
#include "tests/support/temp_directory.h"

namespace longview::models {
namespace {

VilStage Stage(VilAttention attention, int side, ImageSize map = {}) {
  VilStage stage;
  stage.attention = attention;
  stage.features = side;
  stage.map = map;
  stage.absolute = false;
  stage.heads = 1;
  stage.width = 4;
  return stage;
}

TEST(StoredBiasTest, ChunksByTheirFormula) {
  const StoredBiasIndex index = StoredBias(Stage(VilAttention::kChunks, 2));
  EXPECT_EQ(index.entries, 49);
  EXPECT_EQ(index.queries, 4);
  EXPECT_EQ(index.keys, 36);
  EXPECT_EQ(index.At(0, 4 * 4), 24);     // Itself: no offset.
  EXPECT_EQ(index.At(0, 8 * 4 + 3), 0);  // The far corner of the last chunk.
  EXPECT_EQ(index.At(3, 0), 48);
  EXPECT_EQ(StoredBias(Stage(VilAttention::kChunks, 7)).At(0, 4 * 49), 364);
}

TEST(StoredBiasTest, WindowsAliasAsTheyWereTrained) {
  const StoredBiasIndex index = StoredBias(Stage(VilAttention::kLongShort, 7));
  EXPECT_EQ(index.entries, 253);
  EXPECT_EQ(index.queries, 49);
  EXPECT_EQ(index.keys, 169);
  EXPECT_EQ(index.At(0, 0), 168);   // Query (0, 0), key (-3, -3).
  EXPECT_EQ(index.At(48, 0), 252);  // Query (6, 6).
  EXPECT_EQ(index.At(0, 168), 0);   // Key (9, 9).
  EXPECT_EQ(StoredBias(Stage(VilAttention::kLongShort, 8)).entries, 375);
  EXPECT_EQ(StoredBias(Stage(VilAttention::kLongShort, 1)).entries, 1);
}

TEST(StoredBiasTest, FullMapsOfTwoSides) {
  const StoredBiasIndex index = StoredBias(Stage(VilAttention::kFull, 7, {3, 2}));
  EXPECT_EQ(index.entries, 15);
  EXPECT_EQ(index.At(0, 0), 2 * 3 + 1);
  EXPECT_EQ(index.At(0, 5), 0);
  EXPECT_EQ(index.At(5, 0), 14);
}

TEST(VilConfigTest, BackbonesCropAbsolutePositionsWhateverTheAttention) {
  VilConfig config;
  config.family = "vil";
  config.backbone = true;
  for (const VilAttention attention : {VilAttention::kFull, VilAttention::kChunks,
                                       VilAttention::kReduction, VilAttention::kPerformer}) {
    VilStage stage = Stage(attention, 7, {40, 40});
    stage.absolute = true;
    config.stages = {stage};
    EXPECT_TRUE(config.Fits(0, {40, 40}));
    EXPECT_TRUE(config.Fits(0, {24, 32}));
    EXPECT_FALSE(config.Fits(0, {24, 41}));
  }
  // A table of all pairs of places, or a projection of them, has one size.
  config.stages = {Stage(VilAttention::kFull, 7, {40, 40})};
  EXPECT_FALSE(config.Fits(0, {24, 32}));
  config.stages[0] = Stage(VilAttention::kLinformer, 7, {40, 40});
  config.stages[0].absolute = true;
  EXPECT_FALSE(config.Fits(0, {24, 32}));
}

TEST(ResizeTest, HalfPixelCentresWithClampedBorders) {
  const std::vector<float> row = {0, 1, 2, 3};
  EXPECT_EQ(ResizeRows(row, 4, 4, 1), row);
  EXPECT_EQ(ResizeRows(row, 4, 2, 1), (std::vector<float>{0.5f, 2.5f}));
  const std::vector<float> wide = ResizeRows(row, 4, 8, 1);
  EXPECT_EQ(wide, (std::vector<float>{0, 0.25f, 0.75f, 1.25f, 1.75f, 2.25f, 2.75f, 3}));
  EXPECT_EQ(ResizeRows(std::vector<float>{5, 7}, 1, 3, 2), (std::vector<float>{5, 7, 5, 7, 5, 7}));
  const std::vector<float> plane = {0, 1, 2, 3};
  EXPECT_EQ(ResizePlanes(plane, 1, {2, 2}, {1, 1}), std::vector<float>{1.5f});
  EXPECT_EQ(ResizePlanes(plane, 1, {2, 2}, {2, 2}), plane);
}

// One number of a stored index, changed.
TEST(VilWeightsTest, AStoredIndexThatIsNotTheFormulasIsRefused) {
  const ImageCase golden("vil", "rpb_nonsquare");
  std::vector<uint8_t> bytes = ReadBytes(golden.folder + "/model/model.safetensors");
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto begin = bytes.begin() + sizeof header;
  const nlohmann::json tensors =
      nlohmann::json::parse(begin, begin + static_cast<std::ptrdiff_t>(header));
  const std::string name = "layer1.1.attn.relative_position_index";
  ASSERT_TRUE(tensors.contains(name));
  bytes[sizeof header + header + tensors[name]["data_offsets"][0].get<uint64_t>() + 8] ^= 1;
  const testing::TempDirectory copy;
  copy.Write("model.safetensors",
             std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  copy.Write("config.json", ReadJsonFile(golden.folder + "/model/config.json")->dump());
  const auto refused = LoadModel(copy.path(), {.dtype = "fp32"});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(std::string(refused.status().message()).find(name + "\"[0, 1]"), std::string::npos)
      << refused.status();
}

}  // namespace
}  // namespace longview::models
