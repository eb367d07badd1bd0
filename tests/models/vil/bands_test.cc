// Large maps go through a stage slice by slice: what comes out does not depend on how they are cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "models/config/json_reader.h"
#include "models/directory/model_directory.h"
#include "models/parallel.h"
#include "models/vil/family.h"
#include "tests/models/image/picture_files.h"
#include "tests/models/vision/slices.h"
#include "tests/support/cpu_types.h"

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
    weights_ = *LoadVilWeights(config_, nullptr, directory_.checkpoint, path, compute(), nullptr);
    context_ = VilContext(config_, weights_, compute(), pool_, shapes_);
  }

  static Compute compute() { return std::get<1>(GetParam()); }

  SlicedRun Run() {
    return [this](std::span<const PixelValues> pictures, int64_t tokens) {
      context_.band_tokens = tokens;
      context_.cuts = {tokens, tokens};
      return RunBatch<VilForward>(context_, pictures);
    };
  }

  ModelDirectory directory_;
  VilConfig config_;
  VilWeights weights_;
  TorchParallelFor pool_;
  ShapeCache shapes_;
  VilContext context_;
};

// Only the global tokens' sums are taken in another order: with long-short attention, local tokens
// have the same bits as long as they have not seen such a global token.
TEST_P(BandsTest, SlicesMakeWhatTheWholeMapMakes) {
  std::vector<size_t> same_bits;
  const VilStage& first = config_.stages[0];
  if (first.attention == VilAttention::kLongShort && (first.blocks == 1 || first.globals == 0)) {
    same_bits.push_back(0);
  }
  const std::array<int64_t, 3> tokens = {1, 300, 1000};
  ExpectSlicesMakeTheWhole(Run(), {232, 200}, tokens, compute(), same_bits);
}

TEST_P(BandsTest, SmallAndSlicedImagesOfABatchKeepTheirBits) {
  ExpectBatchKeepsBits(Run(), {232, 200});
}

// Within a batch, from batch to batch, and from measuring to running.
TEST_P(BandsTest, ImagesOfOneSizeShareWhatFollowsFromIt) {
  const std::vector<ImageSize> of_image = *VilMaps(config_, {232, 200});
  for (size_t s = 0; s < config_.stages.size(); ++s) {
    const ImageSize maps[] = {of_image[s], of_image[s]};
    context_.band_tokens = int64_t{maps[0].height} * maps[0].width;  // Each is a band of its own.
    const VilStagePlan measured = PlanVilStage(context_, s, maps, true);
    const VilStagePlan first = PlanVilStage(context_, s, maps, false);
    const size_t bytes = shapes_.bytes();
    const VilStagePlan second = PlanVilStage(context_, s, maps, false);
    EXPECT_EQ(shapes_.bytes(), bytes);
    EXPECT_EQ(first.images[0].places, first.images[1].places);
    EXPECT_EQ(first.images[0].places, measured.images[0].places);
    EXPECT_EQ(first.positions, second.positions);
    ASSERT_EQ(first.bands.size(), measured.bands.size());
    for (size_t b = 0; b < first.bands.size(); ++b) {
      EXPECT_EQ(first.bands[b].attention.made, first.bands[0].attention.made);
      EXPECT_EQ(first.bands[b].attention.made, measured.bands[b].attention.made);
      EXPECT_EQ(first.bands[b].attention.maps, first.bands[0].attention.maps);
      EXPECT_EQ(first.bands[b].attention.maps, second.bands[b].attention.maps);
    }
    ASSERT_EQ(first.long_short.size(), measured.long_short.size());
    for (size_t b = 0; b < first.long_short.size(); ++b) {
      EXPECT_EQ(first.long_short[b].whole, measured.long_short[b].whole);
      EXPECT_EQ(first.long_short[b].shapes, measured.long_short[b].shapes);
    }
    EXPECT_EQ(first.biases, second.biases);
  }
}

// Results of linears lie beside the buffers, and the cost of a picture counts them, too.
TEST_P(BandsTest, CostsCountTheResultsOfLinears) {
  const bool ls = std::get<0>(GetParam()).starts_with("vil_ls/");
  const auto build = ls ? VilLsFamily::Build : VilFamily::Build;
  const auto family = build(directory_, nullptr, compute(), nullptr, LoadOptions());
  ASSERT_TRUE(family.ok()) << family.status();
  const ImageSize size = (*family)->typical_size();
  const VisionPicture picture = WholePicture(size, config_.stages.size());
  const ForwardNeed need =
      CountOnHost(*VilForward::MakePass(context_, {&picture, 1}, true), context_).need;
  EXPECT_GT(need.transient, 0u);
  EXPECT_EQ((*family)->WorkspaceBytes(size), need.memory() + need.transient);
}

// The published shapes.
TEST(BandsMemoryTest, LargeImagesNeedFewOfTheirLargestMap) {
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
    VilWeights weights;  // Sizes of buffers do not depend on them.
    for (const VilStage& stage : config.stages) {
      weights.stages.emplace_back().blocks.resize(static_cast<size_t>(stage.blocks));
    }
    ShapeCache shapes;
    for (const Compute compute : {Compute::kFp32, Compute::kBf16}) {
      ExpectFewLiveMaps<VilForward>({config, weights, compute, pool, shapes},
                                    arch + ", " + ComputeName(compute));
    }
  }
}

std::string NameOf(const testing::TestParamInfo<BandsTest::ParamType>& info) {
  std::string name = std::get<0>(info.param);
  std::replace(name.begin(), name.end(), '/', '_');
  return name + "_" + ComputeName(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(
    All, BandsTest,
    testing::Combine(testing::Values("vil/rpb_mode_minus1", "vil/rpb_nonsquare",
                                     "vil/ape_cyclic_no_globals", "vil_ls/published_shape_64",
                                     "vil_ls/projection_only_w0", "vil_ls/window_only_r0",
                                     "vil_ls/module_prefix_no_buffers"),
                     testing::ValuesIn(CpuTypes())),
    NameOf);

}  // namespace
}  // namespace longview::models
