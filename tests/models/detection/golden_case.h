// One fixture of tests/golden/vil_detection, and running it.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
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

  // Of any type, as double.
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

inline void ExpectSameBits(const Detection& a, const Detection& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(std::memcmp(&a.score, &b.score, 5 * sizeof(float)), 0);
  EXPECT_EQ(a.mask_runs, b.mask_runs);
}

}  // namespace longview::models
