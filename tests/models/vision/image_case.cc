#include "tests/models/vision/image_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "models/config/json_reader.h"
#include "tests/models/image/picture_files.h"
#include "tests/support/temp_directory.h"

namespace longview::models {
namespace {

std::string FamilyFolder(const std::string& family) {
  const char* root = std::getenv("LONGVIEW_GOLDEN");
  return std::string(root != nullptr ? root : LONGVIEW_GOLDEN_DIR) + "/" + family;
}

Request PixelRequest(const TensorView& tensor, const std::vector<double>& values, int64_t first) {
  Request request;
  PixelInput& input = request.pixel_values.emplace();
  const size_t axes = tensor.shape.size();
  input.height = static_cast<int>(tensor.shape[axes - 2]);
  input.width = static_cast<int>(tensor.shape[axes - 1]);
  const int64_t size = int64_t{3} * input.height * input.width;
  input.values.assign(values.begin() + first * size, values.begin() + (first + 1) * size);
  return request;
}

// The original code took pictures as they lie, whatever their Exif says.
void HideExif(std::vector<uint8_t>& picture) {
  constexpr std::string_view kMark("Exif\0\0", 6);
  const auto at = std::search(picture.begin(), picture.end(), kMark.begin(), kMark.end());
  if (at != picture.end()) *at = 'x';
}

}  // namespace

std::vector<double> ValuesOf(const Checkpoint& file, const std::string& name) {
  const TensorView* tensor = file.Find(name);
  std::vector<double> values;
  if (tensor == nullptr) return values;
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

ImageCase::ImageCase(const std::string& family, const std::string& name)
    : folder(FamilyFolder(family) + "/" + name) {
  inputs = *Checkpoint::Open(folder + "/inputs.safetensors");
  expected = *Checkpoint::Open(folder + "/expected.safetensors");
  description = *ReadJsonFile(folder + "/case.json");
}

std::unique_ptr<Model> ImageCase::Load(const std::string& dtype) const {
  auto model = LoadModel(folder + "/model", {.dtype = dtype});
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : nullptr;
}

absl::StatusOr<std::unique_ptr<Model>> ImageCase::LoadEdited(const nlohmann::json& changes,
                                                             const std::string& directory) const {
  const testing::TempDirectory copy;
  const std::filesystem::path from = folder + "/" + directory;
  std::filesystem::copy_file(from / "model.safetensors", copy.path() + "/model.safetensors");
  nlohmann::json config = *ReadJsonFile((from / "config.json").string());
  config.update(changes);
  copy.Write("config.json", config.dump());
  return LoadModel(copy.path(), {.dtype = "fp32"});
}

std::unique_ptr<Model> ImageCase::LoadWith(const nlohmann::json& changes,
                                           const std::string& directory) const {
  auto model = LoadEdited(changes, directory);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : nullptr;
}

std::vector<Request> ImageCase::Requests() const {
  std::vector<Request> requests;
  if (const TensorView* stacked = inputs.Find("pixel_values")) {
    const std::vector<double> values = ValuesOf(inputs, "pixel_values");
    for (int64_t i = 0; i < stacked->shape[0]; ++i) {
      requests.push_back(PixelRequest(*stacked, values, i));
    }
  }
  for (int i = 0;; ++i) {
    const std::string name = absl::StrCat("pixel_values.", i);
    const TensorView* one = inputs.Find(name);
    if (one == nullptr) break;
    requests.push_back(PixelRequest(*one, ValuesOf(inputs, name), 0));
  }
  if (requests.empty()) {
    for (const auto& path : FilesOf(folder + "/images")) {
      std::vector<uint8_t> bytes = ReadBytes(path);
      HideExif(bytes);
      requests.emplace_back().image.emplace(bytes.begin(), bytes.end());
    }
  }
  for (Request& request : requests) {
    request.task = Task::kImageClassification;
    request.tensors = {"logits", "embedding"};
  }
  return requests;
}

double ImageCase::Allowed(size_t item) const {
  constexpr double kOtherDecoder = 0.02;  // A level more or less in some pixels.
  if (std::filesystem::exists(folder + "/images") &&
      FilesOf(folder + "/images")[item].extension() == ".jpg") {
    return kOtherDecoder;
  }
  return description["tolerance"]["logits"].get<double>();
}

int ImageCase::Stages() const {
  int stages = 0;
  while (!Hidden(stages + 1, 0).empty()) ++stages;
  return stages;
}

std::vector<double> ImageCase::Hidden(int stage, size_t item) const {
  const std::string name = absl::StrCat("hidden.stage", stage);
  const TensorView* stacked = expected.Find(name);
  std::vector<double> values = ValuesOf(expected, name);
  if (stacked == nullptr) return ValuesOf(expected, absl::StrCat(name, ".", item));
  const auto images = stacked->shape.size() == 3 ? static_cast<size_t>(stacked->shape[0]) : 1;
  if (item >= images) return {};
  const size_t size = values.size() / images;
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(item * size);
  return {begin, begin + static_cast<std::ptrdiff_t>(size)};
}

std::vector<std::string> ImageCases(const std::string& family) {
  std::vector<std::string> names;
  for (const auto& path : FilesOf(FamilyFolder(family))) names.push_back(path.filename());
  return names;
}

double Distance(const Answer& answer, const std::string& name, const std::vector<double>& want,
                size_t item) {
  const HostTensor* tensor = answer.Find(name);
  if (tensor == nullptr) return INFINITY;
  const auto got = tensor->floats();
  if (want.size() < (item + 1) * got.size()) return INFINITY;
  return LargestDifference(got, std::span(want).subspan(item * got.size(), got.size()));
}

void ExpectFixtureWithinTolerance(const ImageCase& golden) {
  const std::unique_ptr<Model> model = golden.Load("fp32");
  ASSERT_NE(model, nullptr);
  ExpectWithinTolerance(golden, *model);
}

void ExpectWithinTolerance(const ImageCase& golden, const Model& model) {
  const std::vector<double> logits = ValuesOf(golden.expected, "logits.f64");
  const std::vector<double> features = ValuesOf(golden.expected, "features");
  const std::vector<Answer> answers = RunTogether(model, golden.Requests());
  ASSERT_FALSE(answers.empty());
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_LE(Distance(answers[i], "logits", logits, i), golden.Allowed(i)) << i;
    EXPECT_LE(Distance(answers[i], "embedding", features, i), golden.Allowed(i)) << i;
    EXPECT_EQ(answers[i].labels.size(), answers[i].Find("logits")->floats().size());
  }
}

void ExpectFeatures(const ImageCase& golden, const Model& model) {
  const std::vector<double> features = ValuesOf(golden.expected, "features");
  const std::vector<Answer> answers = RunTogether(model, golden.Requests());
  ASSERT_FALSE(answers.empty());
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_LE(Distance(answers[i], "embedding", features, i), golden.Allowed(i)) << i;
  }
}

void ExpectStageMaps(const ImageCase& golden) {
  const std::unique_ptr<Model> model = golden.Load("fp32");
  ASSERT_NE(model, nullptr);
  ExpectStageMaps(golden, *model);
}

void ExpectStageMaps(const ImageCase& golden, const Model& model) {
  std::vector<std::string> names;
  for (const TensorSpec& output : model.info().outputs) {
    if (output.name.starts_with("features.")) names.push_back(output.name);
  }
  ASSERT_FALSE(names.empty());
  std::vector<Request> requests = golden.Requests();
  for (Request& request : requests) {
    request.task = Task::kImageFeatures;
    request.tensors = names;
  }
  const std::vector<Answer> answers = RunTogether(model, requests);
  const bool one_map_a_stage = static_cast<int>(names.size()) == golden.Stages();
  for (size_t i = 0; i < answers.size(); ++i) {
    for (size_t n = 0; n < names.size(); ++n) {
      // A stride that several stages share is the last one's: only the coarsest is sure to be it.
      if (!one_map_a_stage && n + 1 < names.size()) continue;
      const int stage = one_map_a_stage ? static_cast<int>(n) + 1 : golden.Stages();
      const std::vector<double> hidden = golden.Hidden(stage, i);
      if (hidden.empty()) continue;
      const HostTensor* map = answers[i].Find(names[n]);
      ASSERT_NE(map, nullptr) << names[n];
      const int64_t channels = map->shape[0], places = map->shape[1] * map->shape[2];
      const auto globals = static_cast<int64_t>(hidden.size()) / channels - places;
      ASSERT_GE(globals, 0);
      double largest = 0;
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t p = 0; p < places; ++p) {
          largest = std::max(largest, std::abs(map->floats()[c * places + p] -
                                               hidden[(globals + p) * channels + c]));
        }
      }
      EXPECT_LE(largest, std::max(2e-4, 4 * golden.Allowed(i))) << names[n] << " of image " << i;
    }
  }
}

Request Resized(Request request, ImageSize size) {
  const size_t values = size_t{3} * static_cast<size_t>(size.height * size.width);
  request.pixel_values = PixelInput{size.height, size.width, std::vector<float>(values)};
  return request;
}

void ExpectSizeRefused(const Model& model, Request request, ImageSize size,
                       const std::string& part) {
  const absl::Status refused = model.Prepare(Resized(std::move(request), size)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  const std::string message(refused.message());
  EXPECT_NE(message.find(absl::StrCat(size.height, " x ", size.width)), std::string::npos)
      << message;
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

}  // namespace longview::models
