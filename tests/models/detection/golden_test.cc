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
  const DetectionCase golden(GetParam());
  for (const std::string dtype : {"fp32", "bf16"}) {
    const std::unique_ptr<Model> model = golden.Load(dtype);
    ASSERT_NE(model, nullptr);
    std::vector<Request> batch;
    for (size_t i = 0; i < golden.pictures.size(); ++i) batch.push_back(golden.RequestOf(i));
    for (size_t i = golden.pictures.size(); i-- > 0;) batch.push_back(golden.RequestOf(i));
    const std::vector<Answer> together = RunTogether(*model, batch);
    ASSERT_EQ(together.size(), batch.size());
    for (size_t i = 0; i < batch.size(); ++i) {
      const std::vector<Answer> alone = RunTogether(*model, {batch[i]});
      ASSERT_EQ(alone[0].detections.size(), together[i].detections.size()) << dtype;
      for (size_t n = 0; n < alone[0].detections.size(); ++n) {
        ExpectSameBits(alone[0].detections[n], together[i].detections[n]);
      }
    }
  }
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
