// Large maps go through a stage slice by slice: what comes out does not depend on how they are cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "models/config/json_reader.h"
#include "models/cvt_ls/batch.h"
#include "models/model_directory.h"
#include "models/parallel.h"
#include "tests/models/image/picture_files.h"

namespace longview::models {
namespace {

PixelValues Picture(ImageSize size) {
  PixelValues pixels{size, std::vector<float>(size_t{3} * size.height * size.width)};
  uint32_t state = 7;
  for (float& value : pixels.values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
  }
  return pixels;
}

// A fixture's model, driven below LoadModel, with slices of any size.
class CvtBandsTest : public testing::TestWithParam<std::tuple<std::string, Compute>> {
 protected:
  CvtBandsTest() {
    const std::string path = GoldenPath("/cvt_ls/") + std::get<0>(GetParam()) + "/model";
    directory_ = *OpenModelDirectory(path);
    config_ = *ParseCvtConfig(directory_.config, directory_.common, path, false);
    config_.any_size = true;
    weights_ = *LoadCvtWeights(config_, nullptr, directory_.checkpoint, path, compute());
    context_ = CvtContext(config_, weights_, compute(), pool_);
  }

  static Compute compute() { return std::get<1>(GetParam()); }

  // All stages' maps, and the vector that enters the head.
  std::vector<std::vector<float>> Run(std::span<const PixelValues> pictures, int64_t tokens) {
    context_.large_tokens = context_.slice_tokens = tokens;
    std::vector<VisionInput> inputs;
    for (const PixelValues& pixels : pictures) inputs.push_back({&pixels, {0, 1, 2}});
    ScratchKeeper keeper;
    CvtBatch batch(context_, inputs, keeper, nullptr);
    while (batch.Advance()) {
    }
    std::vector<std::vector<float>> results;
    for (size_t i = 0; i < pictures.size(); ++i) {
      for (FeatureMap& map : batch.TakeMaps(i)) results.push_back(std::move(map.values));
      results.push_back(batch.Embedding(i));
    }
    return results;
  }

  ModelDirectory directory_;
  CvtConfig config_;
  CvtWeights weights_;
  TorchParallelFor pool_;
  CvtContext context_;
};

// In another order are taken: the class token's sums, in the last stage, and those over windows
// that share a block of keys.
TEST_P(CvtBandsTest, SlicesMakeWhatTheWholeMapMakes) {
  const std::vector<PixelValues> pictures = {Picture({236, 200})};
  const auto whole = Run(pictures, int64_t{1} << 40);
  const double allowed = compute() == Compute::kFp32 ? 2e-5 : 0.1;
  for (const int64_t tokens : {1, 150, 600}) {
    const auto sliced = Run(pictures, tokens);
    ASSERT_EQ(sliced.size(), 4u);
    EXPECT_EQ(sliced[0], whole[0]) << tokens;
    if (config_.stages[1].window >= 4) {
      EXPECT_EQ(sliced[1], whole[1]) << tokens;
    }
    for (size_t r = 1; r < whole.size(); ++r) {
      ASSERT_EQ(sliced[r].size(), whole[r].size());
      double largest = 0;
      for (size_t i = 0; i < whole[r].size(); ++i) {
        largest = std::max(largest, std::abs(double{sliced[r][i]} - whole[r][i]));
      }
      EXPECT_LE(largest, allowed) << tokens << " tokens, result " << r;
    }
  }
}

TEST_P(CvtBandsTest, SmallAndSlicedImagesOfABatchKeepTheirBits) {
  const std::vector<PixelValues> pictures = {Picture({64, 96}),   Picture({236, 200}),
                                             Picture({64, 64}),   Picture({96, 64}),
                                             Picture({160, 320}), Picture({64, 64})};
  const auto together = Run(pictures, 500);
  const size_t each = together.size() / pictures.size();
  for (size_t i = 0; i < pictures.size(); ++i) {
    const auto alone = Run({&pictures[i], 1}, 500);
    for (size_t r = 0; r < each; ++r) EXPECT_EQ(alone[r], together[i * each + r]) << i << " " << r;
  }
}

// The published shape at sizes for detection: the residual stream, the outputs beside it, and
// little more.
TEST(CvtBandsMemoryTest, ALargeImageNeedsLessThanThreeOfItsLargestMap) {
  const std::string path = GoldenPath("/cvt_ls/any_size/model");
  ModelDirectory directory = *OpenModelDirectory(path);
  directory.config["dims"] = {64, 192, 384};
  directory.config["heads"] = {1, 3, 6};
  directory.config["depths"] = {1, 2, 10};
  directory.config["ranks"] = {64, 16, 4};
  directory.config["windows"] = {8, 4, 2};
  directory.config["image_size"] = 224;
  const CvtConfig config = *ParseCvtConfig(directory.config, directory.common, path, false);
  const CvtWeights weights;
  const kernels::SerialFor pool;  // Threads have scratch of their own, a little each.
  for (const Compute compute : {Compute::kFp32, Compute::kBf16}) {
    const CvtContext context(config, weights, compute, pool);
    const ImageSize size{1024, 1024};
    const double bytes = 4.0 * 256 * 256 * config.stages[0].width;
    const auto scratch = static_cast<double>(CvtBatch::ScratchBytes(context, {&size, 1}));
    std::printf("%s: %.2f live maps\n", compute == Compute::kFp32 ? "fp32" : "bf16",
                scratch / bytes);
    EXPECT_LE(scratch, 3 * bytes);
  }
}

std::string NameOf(const testing::TestParamInfo<CvtBandsTest::ParamType>& info) {
  return std::get<0>(info.param) + (std::get<1>(info.param) == Compute::kFp32 ? "_fp32" : "_bf16");
}

INSTANTIATE_TEST_SUITE_P(All, CvtBandsTest,
                         testing::Combine(testing::Values("any_size", "cls_joint", "count_matched",
                                                          "no_cls_mean", "ws_qkv_no_dual_ln"),
                                          testing::Values(Compute::kFp32, Compute::kBf16)),
                         NameOf);

}  // namespace
}  // namespace longview::models
