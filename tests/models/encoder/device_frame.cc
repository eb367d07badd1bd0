#include "tests/models/encoder/device_frame.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <utility>

#include "models/encoder/model.h"
#include "models/status_macros.h"
#include "tests/kernels/cuda/support/emulated_plugin.h"
#include "tests/models/device/device_places.h"

namespace longview::models {

using kernels::cuda::PluginApi;
using kernels::cuda::testing::EmulatedPlugin;

absl::StatusOr<std::unique_ptr<Model>> LoadOnDevice(std::unique_ptr<Device> device,
                                                    const std::string& directory,
                                                    const std::string& dtype, MakeEncoder make) {
  ASSIGN_OR_RETURN(ModelDirectory opened, OpenModelDirectory(directory));
  LoadOptions options;
  options.dtype = dtype;
  return LoadEncoderAt(std::move(device), std::move(opened), options, make);
}

void ExpectGoldenOnDevices(const DeviceGolden& golden) {
  for (const DevicePlace& place : PlacesOfDevices()) {
    // The kernels' own tests hold every type to both orders.
    const bool fp32_only = place.name == kFallingPlace;
    const std::pair<std::string, double> types[] = {
        {"fp32", golden.limits.fp32}, {"bf16", golden.limits.bf16}, {"fp16", golden.limits.fp16}};
    for (const auto& [dtype, limit] : types) {
      if (fp32_only && dtype != "fp32") continue;
      SCOPED_TRACE(place.name + ", " + dtype);
      const auto model = LoadOnDevice(place.open(), golden.directory, dtype, golden.make);
      ASSERT_TRUE(model.ok()) << model.status();
      EXPECT_EQ((*model)->info().dtype, dtype);
      EXPECT_GT((*model)->info().memory_bytes, 0);
      const double error = golden.error(ExpectSameBitsAloneAndTogether(**model, golden.requests));
      EXPECT_LE(error, limit);
      std::printf("%-28s %s on %s: largest error %.2e\n", golden.name.c_str(), dtype.c_str(),
                  place.name.c_str(), error);
    }
  }
}

void ExpectTheCpusAnswers(const std::string& name, const std::string& directory, MakeEncoder make,
                          const std::vector<Request>& requests, const TypeLimits& limits) {
  SCOPED_TRACE(name);
  const auto cpu = LoadModel(directory, {.dtype = "fp32", .device = "cpu"});
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  const std::vector<Answer> expected = RunTogether(**cpu, requests);
  const auto error = [&](const std::vector<Answer>& answers) {
    return LargestDifference(answers, expected);
  };
  ExpectGoldenOnDevices({name, directory, make, requests, error, limits});
}

void ExpectAdmittedExactly(const std::string& directory, MakeEncoder make,
                           const std::vector<Request>& requests) {
  const auto load = [&](uint64_t free_bytes) {
    const PluginApi api = EmulatedPluginWith(free_bytes);
    return LoadOnDevice(Device::OnHost(api), directory, "fp32", make).status();
  };
  uint64_t refused = 0, enough = uint64_t{1} << 34;
  while (enough - refused > 1) {
    const uint64_t half = refused + (enough - refused) / 2;
    (load(half).ok() ? enough : refused) = half;
  }
  const absl::Status status = load(refused);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  for (const std::string part : {" on host: needs ", "weights", "one document of ", "are free"}) {
    EXPECT_NE(std::string(status.message()).find(part), std::string::npos) << status;
  }
  const PluginApi ample = EmulatedPluginWith(uint64_t{1} << 34);
  const auto roomy = LoadOnDevice(Device::OnHost(ample), directory, "fp32", make);
  ASSERT_TRUE(roomy.ok()) << roomy.status();
  const std::vector<Answer> together = RunTogether(**roomy, requests);
  const PluginApi one = EmulatedPluginWith(enough);
  const auto tight = LoadOnDevice(Device::OnHost(one), directory, "fp32", make);
  ASSERT_TRUE(tight.ok()) << tight.status();
  EXPECT_LT((*tight)->info().memory_bytes, (*roomy)->info().memory_bytes);
  ExpectSameBits(RunTogether(**tight, requests), together);
}

void ExpectDropsChangeNothing(const std::string& directory, MakeEncoder make,
                              const std::vector<Request>& requests) {
  const auto model = LoadOnDevice(Device::OnHost(EmulatedPlugin()), directory, "fp32", make);
  ASSERT_TRUE(model.ok()) << model.status();
  ExpectDropsChangeNothing(**model, requests);
}

}  // namespace longview::models
