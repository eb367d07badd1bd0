// One fixture of tests/golden/vil_detection, and running it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/checkpoint/checkpoint.h"
#include "models/config/json_reader.h"
#include "models/model.h"
#include "nlohmann/json.hpp"
#include "tests/models/image/picture_files.h"
#include "tests/models/vision/image_case.h"

namespace longview::models {

struct DetectionCase {
  explicit DetectionCase(const std::string& name)
      : folder(GoldenPath("/vil_detection") + "/" + name) {
    expected = *Checkpoint::Open(folder + "/expected.safetensors");
    pictures = FilesOf(folder + "/images");
    description = *ReadJsonFile(folder + "/case.json");
  }

  std::unique_ptr<Model> Load(const std::string& dtype = "fp32") const {
    auto model = LoadModel(folder + "/model", {.dtype = dtype});
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : nullptr;
  }

  bool has_masks() const { return expected.Find("masks.0") != nullptr; }
  double Tolerance(const char* of) const { return description["tolerance"][of].get<double>(); }

  Request RequestOf(size_t i) const {
    Request request;
    request.task = Task::kObjectDetection;
    const std::vector<uint8_t> bytes = ReadBytes(pictures[i]);
    request.image.emplace(bytes.begin(), bytes.end());
    request.masks = has_masks();
    return request;
  }

  std::vector<Request> Requests() const {
    std::vector<Request> requests;
    for (size_t i = 0; i < pictures.size(); ++i) requests.push_back(RequestOf(i));
    return requests;
  }

  // Values of any type, as double.
  std::vector<double> Values(const std::string& name) const {
    if (expected.Find(name) == nullptr) ADD_FAILURE() << "no tensor " << name;
    return ValuesOf(expected, name);
  }

  std::string folder;
  Checkpoint expected;
  nlohmann::json description;
  std::vector<std::filesystem::path> pictures;
};

// Row-major 0/1 of `runs`.
inline std::vector<uint8_t> Pixels(const std::vector<uint32_t>& runs, int height, int width) {
  std::vector<uint8_t> out(static_cast<size_t>(height) * width);
  int64_t at = 0;
  uint8_t value = 0;
  for (const uint32_t run : runs) {
    for (uint32_t i = 0; i < run; ++i, ++at) out[at % height * width + at / height] = value;
    value ^= 1;
  }
  EXPECT_EQ(at, int64_t{height} * width);
  return out;
}

inline void ExpectDetections(const DetectionCase& golden, size_t image, const Answer& answer) {
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

// Boxes, classes, scores and masks of all pictures.
inline void ExpectAllDetections(const DetectionCase& golden, const Model& model) {
  const std::vector<Answer> answers = RunTogether(model, golden.Requests());
  ASSERT_EQ(answers.size(), golden.pictures.size());
  for (size_t i = 0; i < answers.size(); ++i) ExpectDetections(golden, i, answers[i]);
}

// The stage maps behind them.
inline void ExpectBackboneMaps(const DetectionCase& golden, const Model& model) {
  for (size_t i = 0; i < golden.pictures.size(); ++i) {
    Request request = golden.RequestOf(i);
    request.task = Task::kImageFeatures;
    request.masks = false;
    request.tensors = {"features.32", "features.4", "features.8", "features.16"};
    const std::vector<Answer> answers = RunTogether(model, {request});
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

}  // namespace longview::models
