// The outputs that image models name after their stages' strides.
#include <gtest/gtest.h>

#include "models/vision/prepare.h"

namespace longview::models {
namespace {

TEST(FeatureMapsTest, StagesOfOneStrideAreOneOutput) {
  VisionFacts facts;
  facts.strides = {4, 8, 8, 16};
  ModelInfo info;
  AddFeatureMaps(facts, true, info);
  std::vector<std::string> names;
  for (const TensorSpec& output : info.outputs) names.push_back(output.name);
  EXPECT_EQ(names, std::vector<std::string>({"features.4", "features.8", "features.16"}));
  EXPECT_EQ(StageOfTensor(facts, "features.8"), 2);
}

}  // namespace
}  // namespace longview::models
