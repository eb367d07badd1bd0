// The image sizes that a Vision Longformer takes, and the requests that it refuses.
#include <gtest/gtest.h>

#include <cmath>

#include "models/config/json_reader.h"
#include "tests/models/vision/image_case.h"

namespace longview::models {
namespace {

TEST(VilSizesTest, OtherSizesNeedTheKeyWherePositionsFixTheMap) {
  const ImageCase fixed("vil", "rpb_nonsquare");
  const std::unique_ptr<Model> model = fixed.Load("fp32");
  ASSERT_NE(model, nullptr);
  const Request request = fixed.Requests()[0];
  ExpectSizeRefused(*model, request, {64, 64}, "any_size");
  EXPECT_TRUE(fixed.LoadWith({{"any_size", true}})->Prepare(Resized(request, {64, 64})).ok());
}

// The checkpoint before the original loader interpolated its positions, served at the larger size.
TEST(VilSizesTest, PositionsAreInterpolatedAsTheOriginalLoaderDoes) {
  const ImageCase golden("vil", "resize_ape_64_to_96");
  // The chunks are those of the larger model: they leave no trace in such a checkpoint.
  const nlohmann::json larger = *ReadJsonFile(golden.folder + "/model/config.json");
  const std::unique_ptr<Model> model =
      golden.LoadWith({{"any_size", true}, {"arch", larger["arch"]}}, "source");
  ASSERT_NE(model, nullptr);
  ExpectFeatures(golden, *model);
}

TEST(VilRequestsTest, BadRequestsAreNamed) {
  const ImageCase golden("vil", "rpb_nonsquare");
  const std::unique_ptr<Model> model = golden.Load("fp32");
  ASSERT_NE(model, nullptr);
  const auto message = [&](const Request& request) {
    return std::string(model->Prepare(request).status().message());
  };
  Request good = golden.Requests()[0];
  Request request = good;
  request.pixel_values->values[5] = NAN;
  EXPECT_NE(message(request).find("pixel_values[5]"), std::string::npos);
  request = good;
  request.pixel_values->values.pop_back();
  EXPECT_NE(message(request).find("pixel_values"), std::string::npos);
  request.pixel_values->values.clear();
  EXPECT_NE(message(request).find("pixel_values: 0 values"), std::string::npos);
  request = good;
  request.image = "not a picture";
  EXPECT_NE(message(request).find("image"), std::string::npos);
  request = good;
  request.tensors = {"features.3"};
  EXPECT_NE(message(request).find("features.3"), std::string::npos);
  request = good;
  request.task = Task::kTextClassification;
  EXPECT_EQ(model->Prepare(request).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace longview::models
