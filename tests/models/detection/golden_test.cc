// Every fixture of tests/golden/vil_detection through LoadModel: boxes, classes, scores and masks
// in the given picture; the stage maps behind them.
#include "tests/models/detection/golden_case.h"

namespace longview::models {
namespace {

class DetectionGoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(DetectionGoldenTest, Fp32WithinTolerance) {
  const DetectionCase golden(GetParam());
  const std::unique_ptr<Model> model = golden.Load();
  ASSERT_NE(model, nullptr);
  ExpectAllDetections(golden, *model);
}

TEST_P(DetectionGoldenTest, StageMaps) {
  const DetectionCase golden(GetParam());
  const std::unique_ptr<Model> model = golden.Load();
  ASSERT_NE(model, nullptr);
  ExpectBackboneMaps(golden, *model);
}

TEST_P(DetectionGoldenTest, TheSameBitsAloneAndTogether) {
  ExpectSameBitsAloneAndTogether(DetectionCase(GetParam()));
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& path : FilesOf(GoldenPath("/vil_detection"))) {
    if (std::filesystem::exists(path / "model")) names.push_back(path.filename());
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, DetectionGoldenTest, testing::ValuesIn(Names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace longview::models
