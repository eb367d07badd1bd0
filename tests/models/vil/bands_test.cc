// Large maps go through a stage slice by slice: what comes out does not depend on how they are cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "models/config/json_reader.h"
#include "models/model_directory.h"
#include "models/parallel.h"
#include "models/vil/batch.h"
#include "tests/models/image/picture_files.h"

namespace longview::models {
namespace {

VilConfig ConfigOf(const std::string& fixture, const ModelDirectory& directory) {
  const auto parse = fixture.starts_with("vil_ls/") ? ParseVilLsConfig : ParseVilConfig;
  return *parse(directory.config, directory.common, fixture, false);
}

// A fixture's model, driven below LoadModel, with bands of any size.
class BandsTest : public testing::TestWithParam<std::tuple<std::string, Compute>> {
 protected:
  BandsTest() {
    const std::string path = GoldenPath("/") + std::get<0>(GetParam()) + "/model";
    directory_ = *OpenModelDirectory(path);
    config_ = ConfigOf(std::get<0>(GetParam()), directory_);
    config_.any_size = true;
    weights_ = *LoadVilWeights(config_, nullptr, directory_.checkpoint, path, compute());
    context_ = VilContext(config_, weights_, compute(), pool_);
    context_.maps = &maps_;
  }

  static Compute compute() { return std::get<1>(GetParam()); }
  static PixelValues Picture(ImageSize size) {
    PixelValues pixels{size, std::vector<float>(size_t{3} * size.height * size.width)};
    uint32_t state = 7;
    for (float& value : pixels.values) {
      state = state * 1664525u + 1013904223u;
      value = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
    }
    return pixels;
  }

  // All stages' maps, and the vector that enters the head.
  std::vector<std::vector<float>> Run(std::span<const PixelValues> pictures, int64_t band_tokens) {
    context_.band_tokens = context_.long_short_tokens = context_.long_short_slice = band_tokens;
    std::vector<VisionInput> inputs;
    for (const PixelValues& pixels : pictures) {
      VisionInput& input = inputs.emplace_back();
      input.pixels = &pixels;
      for (size_t s = 0; s < config_.stages.size(); ++s) input.stages.push_back(s);
    }
    ScratchKeeper keeper;
    VilBatch batch(context_, inputs, keeper, nullptr);
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
  VilConfig config_;
  VilWeights weights_;
  TorchParallelFor pool_;
  VilMapCache maps_;
  VilContext context_;
};

constexpr int64_t kWhole = int64_t{1} << 40;

// Only the global tokens' sums are taken in another order: with long-short attention, local tokens
// have the same bits as long as they have not seen such a global token.
TEST_P(BandsTest, SlicesMakeWhatTheWholeMapMakes) {
  const std::vector<PixelValues> pictures = {Picture({232, 200})};
  const auto whole = Run(pictures, kWhole);
  const double allowed = compute() == Compute::kFp32 ? 2e-5 : 0.1;
  for (const int64_t tokens : {1, 300, 1000}) {
    const auto sliced = Run(pictures, tokens);
    ASSERT_EQ(sliced.size(), whole.size());
    const VilStage& first = config_.stages[0];
    if (first.attention == VilAttention::kLongShort && (first.blocks == 1 || first.globals == 0)) {
      EXPECT_EQ(sliced[0], whole[0]) << tokens;
    }
    for (size_t r = 0; r < whole.size(); ++r) {
      ASSERT_EQ(sliced[r].size(), whole[r].size());
      double largest = 0;
      for (size_t i = 0; i < whole[r].size(); ++i) {
        largest = std::max(largest, std::abs(double{sliced[r][i]} - whole[r][i]));
      }
      EXPECT_LE(largest, allowed) << tokens << " tokens, result " << r;
    }
  }
}

TEST_P(BandsTest, SmallAndSlicedImagesOfABatchKeepTheirBits) {
  const std::vector<PixelValues> pictures = {Picture({64, 96}),   Picture({232, 200}),
                                             Picture({64, 64}),   Picture({96, 64}),
                                             Picture({160, 320}), Picture({64, 64})};
  const auto together = Run(pictures, 500);
  const size_t each = together.size() / pictures.size();
  for (size_t i = 0; i < pictures.size(); ++i) {
    const auto alone = Run({&pictures[i], 1}, 500);
    for (size_t r = 0; r < each; ++r) EXPECT_EQ(alone[r], together[i * each + r]) << i << " " << r;
  }
}

// The published shapes at a size for detection: the residual stream, and little beside it.
TEST(BandsMemoryTest, ALargeImageNeedsLessThanThreeOfItsLargestMap) {
  const std::pair<std::string, std::string> archs[] = {
      {"vil/rpb_nonsquare",
       "l1,h1,d48,n1,s1,g1,p4,f7,a0_l2,h3,d96,n1,s1,g1,p2,f7,a0_"
       "l3,h3,d192,n9,s0,g1,p2,f7,a0_l4,h6,d384,n1,s0,g0,p2,f7,a0"},
      {"vil/rpb_nonsquare",
       "l1,h3,d96,n1,s1,g1,p4,f7,a0_l2,h3,d192,n2,s1,g1,p2,f7,a0_"
       "l3,h6,d384,n8,s0,g1,p2,f7,a0_l4,h12,d768,n1,s0,g0,p2,f7,a0"},
      {"vil_ls/published_shape_64",
       "l1,h1,d48,n1,s1,g1,p4,f7,a0,r8_l2,h3,d96,n1,s1,g1,p2,f7,a0,r8_"
       "l3,h3,d192,n9,s0,g1,p2,f7,a0,r8_l4,h6,d384,n1,s0,g0,p2,f7,a0,r8"},
      {"vil_ls/published_shape_64",
       "l1,h3,d96,n1,s1,g1,p4,f7,a0,r8_l2,h3,d192,n4,s1,g1,p2,f7,a0,r8_"
       "l3,h6,d384,n16,s0,g1,p2,f7,a0,r8_l4,h12,d768,n1,s0,g0,p2,f7,a0,r8"},
  };
  const kernels::SerialFor pool;  // Threads have scratch of their own, a little each.
  for (const auto& [fixture, arch] : archs) {
    ModelDirectory directory = *OpenModelDirectory(GoldenPath("/") + fixture + "/model");
    directory.config["arch"] = arch;
    directory.config["image_size"] = 224;
    directory.config["any_size"] = true;
    const VilConfig config = ConfigOf(fixture, directory);
    for (const Compute compute : {Compute::kFp32, Compute::kBf16}) {
      const VilContext context(config, VilWeights(), compute, pool);
      const ImageSize size{1024, 1024};
      const double bytes = 4.0 * 256 * 256 * config.stages[0].width;
      const size_t scratch = VilBatch::ScratchBytes(context, {&size, 1});
      const double live = static_cast<double>(scratch) / bytes;
      std::printf("%s, %s: %.2f live maps\n", arch.c_str(),
                  compute == Compute::kFp32 ? "fp32" : "bf16", live);
      EXPECT_LE(live, 3) << arch;
    }
  }
}

std::string NameOf(const testing::TestParamInfo<BandsTest::ParamType>& info) {
  std::string name = std::get<0>(info.param);
  std::replace(name.begin(), name.end(), '/', '_');
  return name + (std::get<1>(info.param) == Compute::kFp32 ? "_fp32" : "_bf16");
}

INSTANTIATE_TEST_SUITE_P(
    All, BandsTest,
    testing::Combine(testing::Values("vil/rpb_mode_minus1", "vil/rpb_nonsquare",
                                     "vil/ape_cyclic_no_globals", "vil_ls/published_shape_64",
                                     "vil_ls/projection_only_w0", "vil_ls/window_only_r0",
                                     "vil_ls/module_prefix_no_buffers"),
                     testing::Values(Compute::kFp32, Compute::kBf16)),
    NameOf);

}  // namespace
}  // namespace longview::models
