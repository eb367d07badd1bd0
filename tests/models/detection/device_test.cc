// Detectors whose backbone is on a device, a device of the host's memory where there is none:
// boxes, classes, scores and masks are the original's, and maps.
#include "models/detection/model.h"
#include "models/device/device_admission.h"
#include "models/status_macros.h"
#include "tests/kernels/cuda/support/emulated_plugin.h"
#include "tests/models/detection/golden_case.h"
#include "tests/models/device/device_places.h"

namespace longview::models {
namespace {

absl::StatusOr<std::unique_ptr<Model>> LoadOn(std::unique_ptr<Device> device,
                                              const std::string& path, const std::string& dtype) {
  ASSIGN_OR_RETURN(ModelDirectory directory, OpenModelDirectory(path));
  LoadOptions options;
  options.dtype = dtype;
  options.max_image_pixels = 512 * 512;  // The workspace holds no larger pictures.
  return LoadDetectorAt(std::move(device), std::move(directory), options);
}

class DeviceDetectionTest : public testing::TestWithParam<std::string> {};

TEST_P(DeviceDetectionTest, DetectionsAreTheOriginals) {
  const DetectionCase golden(GetParam());
  for (const DevicePlace& place : PlacesOfDevices()) {
    SCOPED_TRACE(place.name);
    const auto model = LoadOn(place.open(), golden.folder + "/model", "fp32");
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_NE((*model)->info().device, "cpu");
    ExpectAllDetections(golden, **model);
    ExpectBackboneMaps(golden, **model);
  }
}

TEST_P(DeviceDetectionTest, Bf16RunsAndBatchMatesChangeNoBit) {
  const DetectionCase golden(GetParam());
  const auto model = LoadOn(Device::OnHost(kernels::cuda::testing::EmulatedPlugin()),
                            golden.folder + "/model", "bf16");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->info().dtype, "bf16");
  ExpectSameBitsAloneAndTogether(**model, golden.Requests());
}

INSTANTIATE_TEST_SUITE_P(Fixtures, DeviceDetectionTest,
                         testing::Values("maskrcnn_small", "retinanet_ape_crop",
                                         "retinanet_two_sizes"),
                         [](const auto& info) { return info.param; });

TEST(DeviceDetectionMemoryTest, ABackboneThatDoesNotFitIsRefusedAtLoad) {
  const DetectionCase golden("retinanet_two_sizes");
  const kernels::cuda::PluginApi little =
      EmulatedPluginWith(static_cast<uint64_t>(kDeviceLibraryBytes));
  const auto refused = LoadOn(Device::OnHost(little), golden.folder + "/model", "fp32");
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted) << refused.status();
  EXPECT_NE(std::string(refused.status().message()).find("one picture of"), std::string::npos);
}

}  // namespace
}  // namespace longview::models
