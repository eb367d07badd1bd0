// Image models that devices cannot run, alone or as backbones: why, and that the CPU runs them.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "models/cvt_ls/family.h"
#include "models/vil/family.h"
#include "models/vision/backbone.h"
#include "models/vision/load.h"
#include "tests/kernels/cuda/support/emulated_plugin.h"
#include "tests/models/golden/edited_model.h"

namespace longview::models {
namespace {

TEST(VisionPlacementTest, StagesOfOddWidthsAreObstacles) {
  VilConfig vil;
  vil.stages.resize(2);
  vil.stages[0].width = vil.stages[1].width = 24;
  EXPECT_EQ(VilForward::ObstacleOf(vil), std::nullopt);
  vil.stages[1].width = 25;
  EXPECT_EQ(VilForward::ObstacleOf(vil), "stage 2: d25 must be even to run");
  CvtConfig cvt;
  for (auto& stage : cvt.stages) stage.width = 24;
  EXPECT_EQ(CvtForward::ObstacleOf(cvt), std::nullopt);
  cvt.stages[2].width = 25;
  EXPECT_EQ(CvtForward::ObstacleOf(cvt), "dims: 25 must be even to run");
}

TEST(VisionPlacementTest, MoreRandomFeaturesThanADeviceTakesAreServedOnTheCpu) {
  EditedModel edited{GoldenCase("performer", "vil")};
  constexpr int kFeatures = 257, kChannels = 8;
  std::string arch = edited.config["arch"];
  arch.replace(arch.rfind("f16"), 3, "f257");
  edited.config["arch"] = arch;
  EditedTensor& random = edited.tensors.at("layer4.1.attn.fast_attention.projection_matrix");
  random.shape[0] = kFeatures;
  random.values.resize(kFeatures * kChannels, 0.25f);
  absl::StatusOr<ModelDirectory> directory = OpenModelDirectory(edited.Write());
  ASSERT_TRUE(directory.ok()) << directory.status();
  LoadOptions options;
  options.dtype = "fp32";
  const auto model = LoadVisionAt(Device::OnHost(kernels::cuda::testing::EmulatedPlugin()),
                                  *std::move(directory), options, VilBuilder());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->info().device, "cpu");
  ASSERT_FALSE((*model)->info().notes.empty());
  EXPECT_EQ((*model)->info().notes[0],
            "runs on the CPU: stage 4: f257 is above 256, the most random features on host");
}

}  // namespace
}  // namespace longview::models
