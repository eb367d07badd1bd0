// Every fixture of the image classifiers' families through LoadModel: logits, features, the stages'
// maps; the same bits alone and in a batch.
#include <gtest/gtest.h>

#include <utility>

#include "tests/models/vision/image_case.h"

namespace longview::models {
namespace {

using Name = std::pair<std::string, std::string>;  // Family, fixture.

class VisionGoldenTest : public testing::TestWithParam<Name> {
 protected:
  const ImageCase golden_{GetParam().first, GetParam().second};
};

TEST_P(VisionGoldenTest, Fp32WithinTolerance) { ExpectFixtureWithinTolerance(golden_); }
TEST_P(VisionGoldenTest, TheSameBitsAloneAndTogether) { ExpectSameBitsAloneAndTogether(golden_); }
TEST_P(VisionGoldenTest, MapsAreTheReferences) { ExpectStageMaps(golden_); }

TEST_P(VisionGoldenTest, ASizeCostsWhatTheItemDoes) {
  const std::unique_ptr<Model> model = golden_.Load("fp32");
  ASSERT_NE(model, nullptr);
  for (const Request& request : golden_.Requests()) {
    const auto item = model->Prepare(request);
    ASSERT_TRUE(item.ok()) << item.status();
    const ItemUsage& usage = (*item)->usage();
    Request outline;
    outline.task = request.task;
    outline.pixel_values = PixelInput{usage.height, usage.width, {}, true};
    const auto estimate = model->Prepare(outline);
    ASSERT_TRUE(estimate.ok()) << estimate.status();
    EXPECT_GT((*estimate)->cost().workspace_bytes, 0);
    EXPECT_GT((*estimate)->cost().seconds, 0);
    EXPECT_EQ((*estimate)->cost().workspace_bytes, (*item)->cost().workspace_bytes);
    EXPECT_EQ((*estimate)->cost().seconds, (*item)->cost().seconds);
    EXPECT_EQ((*estimate)->usage().width, usage.width);
    EXPECT_EQ((*estimate)->usage().height, usage.height);
  }
}

std::vector<Name> Names() {
  std::vector<Name> names;
  for (const std::string family : {"vil", "vil_ls", "cvt_ls"}) {
    for (const std::string& name : ImageCases(family)) names.emplace_back(family, name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, VisionGoldenTest, testing::ValuesIn(Names()), [](const auto& info) {
  return info.param.first + "_" + info.param.second;
});

}  // namespace
}  // namespace longview::models
