// Large maps go through a stage slice by slice: what comes out does not depend on how they are cut.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "models/config/json_reader.h"
#include "models/cvt_ls/family.h"
#include "models/directory/model_directory.h"
#include "models/parallel.h"
#include "tests/models/image/picture_files.h"
#include "tests/models/vision/slices.h"
#include "tests/support/cpu_types.h"

namespace longview::models {
namespace {

// A fixture's model, driven below LoadModel, with slices of any size.
class CvtBandsTest : public testing::TestWithParam<std::tuple<std::string, Compute>> {
 protected:
  CvtBandsTest() {
    const std::string path = GoldenPath("/cvt_ls/") + std::get<0>(GetParam()) + "/model";
    directory_ = *OpenModelDirectory(path);
    config_ = *ParseCvtConfig(directory_.config, directory_.common, path, false);
    config_.any_size = true;
    weights_ = *LoadCvtWeights(config_, nullptr, directory_.checkpoint, path, compute(), nullptr);
    context_ = CvtContext(config_, weights_, compute(), pool_, shapes_);
  }

  static Compute compute() { return std::get<1>(GetParam()); }

  SlicedRun Run() {
    return [this](std::span<const PixelValues> pictures, int64_t tokens) {
      context_.cuts = {tokens, tokens};
      return RunBatch<CvtForward>(context_, pictures);
    };
  }

  ModelDirectory directory_;
  CvtConfig config_;
  CvtWeights weights_;
  TorchParallelFor pool_;
  ShapeCache shapes_;
  CvtContext context_;
};

// In another order are taken: the class token's sums, in the last stage, and those over windows
// that share a block of keys.
TEST_P(CvtBandsTest, SlicesMakeWhatTheWholeMapMakes) {
  std::vector<size_t> same_bits = {0};
  if (config_.stages[1].window >= 4) same_bits.push_back(1);
  const std::array<int64_t, 3> tokens = {1, 150, 600};
  ExpectSlicesMakeTheWhole(Run(), {236, 200}, tokens, compute(), same_bits);
}

TEST_P(CvtBandsTest, SmallAndSlicedImagesOfABatchKeepTheirBits) {
  ExpectBatchKeepsBits(Run(), {236, 200});
}

// The published shape.
TEST(CvtBandsMemoryTest, LargeImagesNeedFewOfTheirLargestMap) {
  const std::string path = GoldenPath("/cvt_ls/any_size/model");
  ModelDirectory directory = *OpenModelDirectory(path);
  directory.config["dims"] = {64, 192, 384};
  directory.config["heads"] = {1, 3, 6};
  directory.config["depths"] = {1, 2, 10};
  directory.config["ranks"] = {64, 16, 4};
  directory.config["windows"] = {8, 4, 2};
  directory.config["image_size"] = 224;
  const CvtConfig config = *ParseCvtConfig(directory.config, directory.common, path, false);
  CvtWeights weights;  // Sizes of buffers do not depend on them.
  for (size_t s = 0; s < kCvtStages; ++s) {
    weights.stages[s].blocks.resize(static_cast<size_t>(config.stages[s].blocks));
  }
  const kernels::SerialFor pool;  // Threads have scratch of their own, a little each.
  for (const Compute compute : {Compute::kFp32, Compute::kBf16}) {
    ShapeCache shapes;
    ExpectFewLiveMaps<CvtForward>({config, weights, compute, pool, shapes}, ComputeName(compute));
  }
}

std::string NameOf(const testing::TestParamInfo<CvtBandsTest::ParamType>& info) {
  return std::get<0>(info.param) + "_" + ComputeName(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(All, CvtBandsTest,
                         testing::Combine(testing::Values("any_size", "cls_joint", "count_matched",
                                                          "no_cls_mean", "ws_qkv_no_dual_ln"),
                                          testing::ValuesIn(CpuTypes())),
                         NameOf);

}  // namespace
}  // namespace longview::models
