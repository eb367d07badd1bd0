// Every fixture of tests/golden/vil_detection through LoadModel: boxes, classes, scores and masks
// in the given picture; the stage maps behind them.
#include <cmath>

#include "tests/models/detection/golden_case.h"

namespace longview::models {
namespace {

class DetectionGoldenTest : public testing::TestWithParam<std::string> {};

void ExpectDetections(const DetectionCase& golden, size_t image, const Answer& answer) {
  const std::string i = "." + std::to_string(image);
  const std::vector<double> boxes = golden.Values("boxes.f64" + i);
  const std::vector<double> scores = golden.Values("scores.f64" + i);
  const std::vector<double> classes = golden.Values("classes" + i);
  ASSERT_EQ(answer.detections.size(), scores.size());
  size_t wrong = 0, pixels = 0;
  const std::vector<double> masks = golden.has_masks() ? golden.Values("masks" + i) : boxes;
  for (size_t n = 0; n < scores.size(); ++n) {
    const Detection& found = answer.detections[n];
    EXPECT_EQ(found.id, classes[n]) << n;
    EXPECT_EQ(found.name, "class_" + std::to_string(found.id));
    EXPECT_NEAR(found.score, scores[n], golden.Tolerance("scores")) << n;
    const float got[] = {found.x0, found.y0, found.x1, found.y1};
    for (int k = 0; k < 4; ++k) {
      EXPECT_NEAR(got[k], boxes[4 * n + k], golden.Tolerance("boxes")) << n;
    }
    if (!golden.has_masks()) continue;
    const std::vector<uint8_t> mask =
        Pixels(found.mask_runs, answer.usage.height, answer.usage.width);
    for (size_t p = 0; p < mask.size(); ++p) wrong += mask[p] != masks[n * mask.size() + p];
    pixels += mask.size();
  }
  EXPECT_LE(static_cast<double>(wrong), 0.001 * static_cast<double>(pixels));
}

TEST_P(DetectionGoldenTest, Fp32WithinTolerance) {
  const DetectionCase golden(GetParam());
  const std::unique_ptr<Model> model = golden.Load();
  ASSERT_NE(model, nullptr);
  std::vector<Request> requests;
  for (size_t i = 0; i < golden.pictures.size(); ++i) requests.push_back(golden.RequestOf(i));
  const std::vector<Answer> answers = RunTogether(*model, requests);
  ASSERT_EQ(answers.size(), requests.size());
  for (size_t i = 0; i < answers.size(); ++i) ExpectDetections(golden, i, answers[i]);
}

TEST_P(DetectionGoldenTest, StageMaps) {
  const DetectionCase golden(GetParam());
  const std::unique_ptr<Model> model = golden.Load();
  ASSERT_NE(model, nullptr);
  for (size_t i = 0; i < golden.pictures.size(); ++i) {
    Request request = golden.RequestOf(i);
    request.task = Task::kImageFeatures;
    request.masks = false;
    request.tensors = {"features.32", "features.4", "features.8", "features.16"};
    const std::vector<Answer> answers = RunTogether(*model, {request});
    ASSERT_EQ(answers.size(), 1u);
    int stage = 1;
    for (const int stride : {4, 8, 16, 32}) {
      const std::string name = "backbone.layer" + std::to_string(stage++) + "." + std::to_string(i);
      if (golden.expected.Find(name) == nullptr) continue;  // RetinaNet reads three of four.
      const std::vector<double> want = golden.Values(name);
      const HostTensor* map = answers[0].Find("features." + std::to_string(stride));
      ASSERT_NE(map, nullptr);
      ASSERT_EQ(map->floats().size(), want.size());
      for (size_t k = 0; k < want.size(); ++k) {
        ASSERT_NEAR(map->floats()[k], want[k], golden.Tolerance("backbone"));
      }
    }
  }
}

TEST_P(DetectionGoldenTest, TheSameBitsAloneAndTogether) {
  const DetectionCase golden(GetParam());
  for (const std::string dtype : {"fp32", "bf16"}) {
    const std::unique_ptr<Model> model = golden.Load(dtype);
    ASSERT_NE(model, nullptr);
    std::vector<Request> company;
    for (size_t i = 0; i < golden.pictures.size(); ++i) company.push_back(golden.RequestOf(i));
    for (size_t i = golden.pictures.size(); i-- > 0;) company.push_back(golden.RequestOf(i));
    const std::vector<Answer> together = RunTogether(*model, company);
    ASSERT_EQ(together.size(), company.size());
    for (size_t i = 0; i < company.size(); ++i) {
      const std::vector<Answer> alone = RunTogether(*model, {company[i]});
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
