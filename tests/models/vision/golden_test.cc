// Every fixture of the image classifiers' families through LoadModel: logits, features, the stages'
// maps; the same bits alone and in company.
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
