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
    std::vector<double> values;
    const TensorView* tensor = expected.Find(name);
    if (tensor == nullptr) {
      ADD_FAILURE() << "no tensor " << name;
      return values;
    }
    const auto read = [&](auto zero) {
      for (int64_t i = 0; i < tensor->elements(); ++i) {
        auto value = zero;
        std::memcpy(&value, tensor->data + i * sizeof value, sizeof value);
        values.push_back(static_cast<double>(value));
      }
    };
    if (tensor->dtype == DType::kF64) read(double{});
    if (tensor->dtype == DType::kF32) read(float{});
    if (tensor->dtype == DType::kI64) read(int64_t{});
    if (tensor->dtype == DType::kU8) read(uint8_t{});
    return values;
  }

  std::string folder;
  Checkpoint expected;
  nlohmann::json description;
  std::vector<std::filesystem::path> pictures;
};

inline std::vector<Answer> RunTogether(const Model& model, const std::vector<Request>& requests) {
  std::vector<std::unique_ptr<Item>> items;
  std::vector<const Item*> batch;
  for (const Request& request : requests) {
    auto item = model.Prepare(request);
    EXPECT_TRUE(item.ok()) << item.status();
    if (!item.ok()) return {};
    items.push_back(*std::move(item));
    batch.push_back(items.back().get());
  }
  const std::unique_ptr<Run> run = model.Begin(batch);
  while (run->Advance()) {
  }
  std::vector<Answer> answers;
  for (size_t i = 0; i < items.size(); ++i) {
    auto answer = run->Take(static_cast<int>(i));
    EXPECT_TRUE(answer.ok()) << answer.status();
    answers.push_back(answer.ok() ? *std::move(answer) : Answer());
  }
  return answers;
}

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
