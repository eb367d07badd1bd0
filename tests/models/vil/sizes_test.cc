// The image sizes that a ViL-LS takes.
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
  const Request request = golden.Requests()[0];
  ExpectSizeRefused(*model, request, {64, 96}, "any_size");
  // Remainders that the patches drop change nothing.
  EXPECT_TRUE(model->Prepare(Resized(request, {66, 67})).ok());
}

}  // namespace
}  // namespace longview::models
