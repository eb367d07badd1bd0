// The stages of the image families on a device: every fixture on a device that is the host, against
// what the original code makes of it; on CUDA's first device where there is one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <random>
#include <utility>

#include "models/config/json_reader.h"
#include "models/device/device_admission.h"
#include "models/directory/model_directory.h"
#include "models/status_macros.h"
#include "models/vil/family.h"
#include "models/vision/backbone.h"
#include "models/vision/load.h"
#include "tests/kernels/cuda/support/emulated_plugin.h"
#include "tests/models/device/device_places.h"
#include "tests/models/vision/image_case.h"
#include "tests/support/cpu_types.h"
#include "tests/support/temp_directory.h"

namespace longview::models {
namespace {

using kernels::cuda::PluginApi;
using kernels::cuda::testing::EmulatedPlugin;

absl::StatusOr<std::unique_ptr<Model>> LoadOn(std::unique_ptr<Device> device,
                                              const std::string& path, const std::string& dtype,
                                              int64_t most_pixels = 512 * 512) {
  ASSIGN_OR_RETURN(ModelDirectory directory, OpenModelDirectory(path));
  LoadOptions options;
  options.dtype = dtype;
  options.max_image_pixels = most_pixels;
  const std::string& type = directory.common.model_type;
  const VisionBuilder builder = type == "vil"      ? VilBuilder()
                                : type == "vil_ls" ? VilLsBuilder()
                                                   : CvtLsBuilder();
  return LoadVisionAt(std::move(device), std::move(directory), options, builder);
}

// The only device on which bits are compared, too: on all of them that would take minutes.
constexpr char kFirstPlace[] = "host";

// A fixture's model with keys of config.json replaced.
class EditedModel {
 public:
  EditedModel(const ImageCase& golden, const nlohmann::json& changes,
              const std::string& directory = "model") {
    const std::filesystem::path from = golden.folder + "/" + directory;
    std::filesystem::copy_file(from / "model.safetensors", copy_.path() + "/model.safetensors");
    nlohmann::json config = *ReadJsonFile((from / "config.json").string());
    config.update(changes);
    copy_.Write("config.json", config.dump());
  }
  const std::string& path() const { return copy_.path(); }

 private:
  const testing::TempDirectory copy_;
};

std::vector<std::string> Strides(const Model& model) {
  std::vector<std::string> names;
  for (const TensorSpec& output : model.info().outputs) {
    if (output.name.starts_with("features.")) names.push_back(output.name);
  }
  return names;
}

using Name = std::pair<std::string, std::string>;  // Family, fixture.

class DeviceVisionTest : public ::testing::TestWithParam<Name> {
 protected:
  const ImageCase golden_{GetParam().first, GetParam().second};
};

TEST_P(DeviceVisionTest, Fp32IsTheOriginalsAloneAndTogether) {
  for (const DevicePlace& place : PlacesOfDevices()) {
    SCOPED_TRACE(place.name);
    const auto model = LoadOn(place.open(), golden_.folder + "/model", "fp32");
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ((*model)->info().dtype, "fp32");
    EXPECT_GT((*model)->info().memory_bytes, 0);
    ExpectWithinTolerance(golden_, **model);
    ExpectStageMaps(golden_, **model);
    if (place.name != kFirstPlace) continue;
    std::vector<Request> requests = golden_.Requests();
    for (Request& request : requests) {
      for (const std::string& name : Strides(**model)) request.tensors.push_back(name);
    }
    ExpectSameBitsAloneAndTogether(**model, requests);
  }
}

TEST_P(DeviceVisionTest, Bf16IsAsNearAsTheCpus) {
  if (!CpuComputesIn("bf16")) GTEST_SKIP() << "no bf16 on this CPU to compare with";
  const std::vector<Request> requests = golden_.Requests();
  const std::vector<Answer> exact = RunTogether(*golden_.Load("fp32"), requests);
  const double cpus = LargestDifference(RunTogether(*golden_.Load("bf16"), requests), exact);
  ASSERT_TRUE(std::isfinite(cpus));
  for (const DevicePlace& place : PlacesOfDevices()) {
    SCOPED_TRACE(place.name);
    const auto model = LoadOn(place.open(), golden_.folder + "/model", "bf16");
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ((*model)->info().dtype, "bf16");
    const double error = LargestDifference(RunTogether(**model, requests), exact);
    EXPECT_LE(error, 3 * cpus + 0.01);
    if (place.name == kFirstPlace) ExpectSameBitsAloneAndTogether(**model, requests);
    std::printf("%-28s bf16 on %s: %.2e from fp32, the CPU's %.2e\n", GetParam().second.c_str(),
                place.name.c_str(), error, cpus);
  }
}

std::vector<Name> Names() {
  std::vector<Name> names;
  for (const std::string family : {"vil", "vil_ls", "cvt_ls"}) {
    for (const std::string& name : ImageCases(family)) names.emplace_back(family, name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Fixtures, DeviceVisionTest, ::testing::ValuesIn(Names()),
                         [](const auto& info) {
                           return info.param.first + "_" + info.param.second;
                         });

// Pictures of other sizes.

// Noise, and all outputs of it.
std::vector<Request> Noise(const Model& model, const std::vector<ImageSize>& sizes) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<Request> requests;
  for (const ImageSize size : sizes) {
    Request& request = requests.emplace_back();
    request.task = Task::kImageClassification;
    request.tensors = Strides(model);
    request.tensors.insert(request.tensors.end(), {"logits", "embedding"});
    PixelInput& pixels = request.pixel_values.emplace();
    pixels.height = size.height;
    pixels.width = size.width;
    pixels.values.resize(size_t{3} * size.height * size.width);
    for (float& value : pixels.values) value = uniform(random);
  }
  return requests;
}

// Ragged batches of sizes the weights were not made for: interpolated positions and tables, more
// sizes than a call has tables, windows cut by borders, lines of one row.
TEST(DeviceVisionSizesTest, PicturesOfAnySizeShareABatch) {
  const std::vector<ImageSize> sizes = {{64, 64}, {32, 64}, {64, 32}, {32, 32},
                                        {70, 33}, {33, 96}, {64, 64}, {48, 80}};
  for (const auto& [family, name] : {Name{"vil", "rpb_nonsquare"},
                                     {"vil", "ape_cyclic_no_globals"},
                                     {"vil_ls", "any_size"},
                                     {"cvt_ls", "any_size"},
                                     {"cvt_ls", "no_cls_mean"}}) {
    SCOPED_TRACE(name);
    const ImageCase golden(family, name);
    const EditedModel any(golden, {{"any_size", true}});
    const auto cpu = LoadModel(any.path(), {.dtype = "fp32"});
    ASSERT_TRUE(cpu.ok()) << cpu.status();
    const std::vector<Request> requests = Noise(**cpu, sizes);
    const std::vector<Answer> expected = RunTogether(**cpu, requests);
    for (const DevicePlace& place : PlacesOfDevices()) {
      SCOPED_TRACE(place.name);
      const auto model = LoadOn(place.open(), any.path(), "fp32", 256 * 256);
      ASSERT_TRUE(model.ok()) << model.status();
      EXPECT_LE(LargestDifference(RunTogether(**model, requests), expected), 1e-4);
      if (place.name == kFirstPlace) ExpectSameBitsAloneAndTogether(**model, requests);
    }
  }
}

// Admission.

// Bytes of weights and one typical picture of a model.
uint64_t LeastBytes(const std::string& path) {
  const absl::StatusOr<ModelDirectory> directory = OpenModelDirectory(path);
  const absl::StatusOr<VilConfig> config =
      ParseVilConfig(directory->config, directory->common, directory->config_path, false);
  DeviceStore store(Compute::kFp32);
  const auto sizes =
      LoadVilWeights(*config, nullptr, directory->checkpoint, path, std::nullopt, &store);
  EXPECT_TRUE(sizes.ok()) << sizes.status();
  return static_cast<uint64_t>(kDeviceLibraryBytes) + store.bytes() +
         VilFamily::DeviceBytes(*config, *sizes, Compute::kFp32, config->image).device();
}

TEST(DeviceVisionMemoryTest, WhatDoesNotFitIsRefusedAtLoadWithNeedAndLimit) {
  const ImageCase golden("vil", "rpb_nonsquare");
  const PluginApi little = EmulatedPluginWith(LeastBytes(golden.folder + "/model") - 1);
  const auto refused = LoadOn(Device::OnHost(little), golden.folder + "/model", "fp32");
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  for (const std::string part : {" on host: needs ", "weights", "one picture of ", "are free"}) {
    EXPECT_NE(std::string(refused.status().message()).find(part), std::string::npos)
        << refused.status();
  }
}

// With memory for one typical picture larger ones are refused before they run, and a batch of
// several runs in parts, and nothing shows.
TEST(DeviceVisionMemoryTest, TheWorkspaceSaysWhichPicturesRun) {
  const ImageCase golden("vil", "rpb_nonsquare");
  const EditedModel any(golden, {{"any_size", true}});
  const int64_t most_pixels = 256 * 256;
  const PluginApi ample = EmulatedPluginWith(uint64_t{1} << 34);
  const auto roomy = LoadOn(Device::OnHost(ample), any.path(), "fp32", most_pixels);
  ASSERT_TRUE(roomy.ok()) << roomy.status();
  const std::vector<Request> requests =
      Noise(**roomy, {{64, 64}, {32, 96}, {64, 64}, {32, 32}, {96, 32}});
  const std::vector<Answer> together = RunTogether(**roomy, requests);
  const PluginApi one = EmulatedPluginWith(LeastBytes(any.path()));
  const auto tight = LoadOn(Device::OnHost(one), any.path(), "fp32", most_pixels);
  ASSERT_TRUE(tight.ok()) << tight.status();
  EXPECT_LT((*tight)->info().memory_bytes, (*roomy)->info().memory_bytes);
  EXPECT_EQ(LargestDifference(RunTogether(**tight, requests), together), 0);
  const ImageSize large = {224, 224};
  EXPECT_TRUE((*roomy)->Prepare(Resized(requests[0], large)).ok());
  ExpectSizeRefused(**tight, requests[0], large, "the model's workspace has");
  ExpectSizeRefused(**roomy, requests[0], {2048, 2048}, "the model's workspace has");
}

TEST(DeviceVisionMemoryTest, DroppedPicturesChangeNothingForOthers) {
  const ImageCase golden("vil", "pictures_48");
  const auto model = LoadOn(Device::OnHost(EmulatedPlugin()), golden.folder + "/model", "fp32");
  ASSERT_TRUE(model.ok()) << model.status();
  ExpectDropsChangeNothing(**model, golden.Requests());
}

}  // namespace
}  // namespace longview::models
