// Every fixture of tests/golden/vil through LoadModel: logits, features and the stages' maps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "models/checkpoint/checkpoint.h"
#include "models/config/json_reader.h"
#include "models/model.h"
#include "tests/models/image/picture_files.h"

namespace longview::models {
namespace {

std::string Folder() {
  const char* root = std::getenv("LONGVIEW_GOLDEN");
  return std::string(root != nullptr ? root : LONGVIEW_GOLDEN_DIR) + "/vil";
}

std::vector<double> Values(const Checkpoint& file, const std::string& name) {
  const TensorView* tensor = file.Find(name);
  std::vector<double> values;
  if (tensor == nullptr) return values;
  for (int64_t i = 0; i < tensor->elements(); ++i) {
    double wide;
    float narrow;
    if (tensor->dtype == DType::kF64) {
      std::memcpy(&wide, tensor->data + i * sizeof wide, sizeof wide);
    } else {
      std::memcpy(&narrow, tensor->data + i * sizeof narrow, sizeof narrow);
      wide = narrow;
    }
    values.push_back(wide);
  }
  return values;
}

struct Case {
  explicit Case(const std::string& name) : folder(Folder() + "/" + name) {
    inputs = *Checkpoint::Open(folder + "/inputs.safetensors");
    expected = *Checkpoint::Open(folder + "/expected.safetensors");
    description = *ReadJsonFile(folder + "/case.json");
  }

  std::unique_ptr<Model> Load(const std::string& dtype) const {
    auto model = LoadModel(folder + "/model", {.dtype = dtype});
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : nullptr;
  }

  std::vector<Request> Requests() const {
    std::vector<Request> requests;
    const TensorView* pixels = inputs.Find("pixel_values");
    if (pixels == nullptr) {
      for (const auto& path : FilesOf(folder + "/images")) {
        const std::vector<uint8_t> bytes = ReadBytes(path);
        requests.emplace_back().image.emplace(bytes.begin(), bytes.end());
      }
    } else {
      const std::vector<double> values = Values(inputs, "pixel_values");
      const auto size = static_cast<int64_t>(values.size()) / pixels->shape[0];
      for (int64_t i = 0; i < pixels->shape[0]; ++i) {
        PixelInput& input = requests.emplace_back().pixel_values.emplace();
        input.height = static_cast<int>(pixels->shape[2]);
        input.width = static_cast<int>(pixels->shape[3]);
        input.values.assign(values.begin() + i * size, values.begin() + (i + 1) * size);
      }
    }
    for (Request& request : requests) {
      request.task = Task::kImageClassification;
      request.tensors = {"logits", "embedding"};
    }
    return requests;
  }

  // Per request, whether its picture is a JPEG file.
  std::vector<bool> Lossy() const {
    std::vector<bool> lossy;
    if (inputs.Find("pixel_values") != nullptr) return std::vector<bool>(Requests().size());
    for (const auto& path : FilesOf(folder + "/images")) {
      lossy.push_back(path.extension() == ".jpg");
    }
    return lossy;
  }

  std::string folder;
  Checkpoint inputs, expected;
  nlohmann::json description;
};

std::vector<Answer> RunTogether(const Model& model, const std::vector<Request>& requests) {
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

// Item i of a stacked expectation.
double Distance(const Answer& answer, const std::string& name, const std::vector<double>& want,
                size_t item) {
  const HostTensor* tensor = answer.Find(name);
  if (tensor == nullptr) return INFINITY;
  const auto got = tensor->floats();
  if (want.size() < (item + 1) * got.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::abs(got[i] - want[item * got.size() + i]));
  }
  return largest;
}

class VilGoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(VilGoldenTest, Fp32WithinTolerance) {
  const Case golden(GetParam());
  const std::unique_ptr<Model> model = golden.Load("fp32");
  ASSERT_NE(model, nullptr);
  const double tolerance = golden.description["tolerance"]["logits"].get<double>();
  const std::vector<double> logits = Values(golden.expected, "logits.f64");
  const std::vector<double> features = Values(golden.expected, "features");
  const std::vector<Answer> answers = RunTogether(*model, golden.Requests());
  ASSERT_FALSE(answers.empty());
  const std::vector<bool> lossy = golden.Lossy();
  for (size_t i = 0; i < answers.size(); ++i) {
    // Another JPEG decoder than the fixture's may differ by a level.
    const double allowed = lossy[i] ? 0.02 : tolerance;
    EXPECT_LE(Distance(answers[i], "logits", logits, i), allowed) << i;
    EXPECT_LE(Distance(answers[i], "embedding", features, i), allowed) << i;
    EXPECT_EQ(answers[i].labels.size(), answers[i].Find("logits")->floats().size());
  }
}

TEST_P(VilGoldenTest, TheSameBitsAloneAndTogether) {
  const Case golden(GetParam());
  const std::vector<Request> requests = golden.Requests();
  for (const std::string dtype : {"fp32", "bf16"}) {
    const std::unique_ptr<Model> model = golden.Load(dtype);
    ASSERT_NE(model, nullptr);
    std::vector<Request> company = requests;
    company.insert(company.end(), requests.rbegin(), requests.rend());
    const std::vector<Answer> together = RunTogether(*model, company);
    ASSERT_EQ(together.size(), company.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      const std::vector<Answer> alone = RunTogether(*model, {requests[i]});
      EXPECT_EQ(together[i].Find("logits")->data, alone[0].Find("logits")->data) << dtype << i;
    }
  }
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& path : FilesOf(Folder())) names.push_back(path.filename());
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, VilGoldenTest, testing::ValuesIn(Names()),
                         [](const auto& info) { return info.param; });

// Stage maps: the local tokens of hidden.stage<s>, of image 0.
TEST(VilFeaturesTest, MapsAreTheReferences) {
  const Case golden("rpb_nonsquare");
  const std::unique_ptr<Model> model = golden.Load("fp32");
  std::vector<Request> requests = golden.Requests();
  requests.resize(1);
  requests[0].task = Task::kImageFeatures;
  requests[0].tensors = {"features.32", "features.4"};
  const std::vector<Answer> answers = RunTogether(*model, requests);
  for (const auto& [name, stage] : {std::pair{"features.4", 1}, {"features.32", 4}}) {
    const HostTensor* map = answers[0].Find(name);
    ASSERT_NE(map, nullptr);
    const std::vector<double> hidden =
        Values(golden.expected, "hidden.stage" + std::to_string(stage));
    const int64_t channels = map->shape[0], places = map->shape[1] * map->shape[2];
    const auto globals = static_cast<int64_t>(hidden.size()) / channels - places;
    ASSERT_GE(globals, 0);
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < places; ++i) {
        ASSERT_NEAR(map->floats()[c * places + i], hidden[(globals + i) * channels + c], 2e-4);
      }
    }
  }
}

TEST(VilSizesTest, AnySizeWhereNothingFixesTheMap) {
  const Case fixed("rpb_nonsquare");
  const std::unique_ptr<Model> model = fixed.Load("fp32");
  Request request = fixed.Requests()[0];
  request.pixel_values = PixelInput{64, 64, std::vector<float>(3 * 64 * 64)};
  const auto refused = model->Prepare(request);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(refused.status().message()).find("64 x 64"), std::string::npos);
}

TEST(VilRequestsTest, BadRequestsAreNamed) {
  const Case golden("rpb_nonsquare");
  const std::unique_ptr<Model> model = golden.Load("fp32");
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
