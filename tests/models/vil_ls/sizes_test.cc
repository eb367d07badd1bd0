// Which image sizes a ViL-LS takes.
#include <gtest/gtest.h>

#include "tests/models/vision/image_case.h"

namespace longview::models {
namespace {

TEST(VilLsSizesTest, PositionsAreInterpolatedAsTheOriginalLoaderDoes) {
  const ImageCase golden("vil_ls", "loader_resize_32_to_48");
  const std::unique_ptr<Model> model = golden.LoadWith({{"any_size", true}}, "source");
  ASSERT_NE(model, nullptr);
  ExpectFeatures(golden, *model);
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
