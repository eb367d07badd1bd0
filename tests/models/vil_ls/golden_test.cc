// Every fixture of tests/golden/vil_ls through LoadModel: logits, features, the stages' maps,
// images of any size.
#include <gtest/gtest.h>

#include "tests/models/vision/image_case.h"

namespace longview::models {
namespace {

class VilLsGoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(VilLsGoldenTest, Fp32WithinTolerance) {
  ExpectFixtureWithinTolerance(ImageCase("vil_ls", GetParam()));
}
TEST_P(VilLsGoldenTest, TheSameBitsAloneAndTogether) {
  ExpectSameBitsAloneAndTogether(ImageCase("vil_ls", GetParam()));
}
TEST_P(VilLsGoldenTest, MapsAreTheReferences) { ExpectStageMaps(ImageCase("vil_ls", GetParam())); }

INSTANTIATE_TEST_SUITE_P(All, VilLsGoldenTest, testing::ValuesIn(ImageCases("vil_ls")),
                         [](const auto& info) { return info.param; });

// The checkpoint before the original loader interpolated it, served at the larger size.
TEST(VilLsSizesTest, PositionsAreInterpolatedAsTheOriginalLoaderDoes) {
  const ImageCase golden("vil_ls", "loader_resize_32_to_48");
  const std::unique_ptr<Model> model = golden.LoadWith({{"any_size", true}}, "source");
  ASSERT_NE(model, nullptr);
  const std::vector<Answer> answers = RunTogether(*model, golden.Requests());
  const std::vector<double> features = ValuesOf(golden.expected, "features");
  ASSERT_FALSE(answers.empty());
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_LE(Distance(answers[i], "embedding", features, i), golden.Allowed(i)) << i;
  }
}

TEST(VilLsSizesTest, OtherSizesNeedTheKey) {
  const ImageCase golden("vil_ls", "published_shape_64");
  const std::unique_ptr<Model> model = golden.Load("fp32");
  ASSERT_NE(model, nullptr);
  Request request = golden.Requests()[0];
  request.pixel_values = PixelInput{64, 96, std::vector<float>(3 * 64 * 96)};
  const auto refused = model->Prepare(request);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string message(refused.status().message());
  EXPECT_NE(message.find("64 x 96"), std::string::npos) << message;
  EXPECT_NE(message.find("any_size"), std::string::npos) << message;
  // Remainders that the patches drop change nothing.
  request.pixel_values = PixelInput{66, 67, std::vector<float>(3 * 66 * 67)};
  EXPECT_TRUE(model->Prepare(request).ok());
}

}  // namespace
}  // namespace longview::models
