// A family's generating models where a test wants them, and what any of them shows on a device.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/device/device.h"
#include "models/directory/model_directory.h"
#include "models/generation/model/family.h"
#include "models/generation/model/generator_loading.h"
#include "models/status_macros.h"
#include "tests/kernels/cuda/support/emulated_plugin.h"
#include "tests/models/device/device_places.h"
#include "tests/models/generation/batch_invariance.h"

namespace longview::models {

template <MakeGenerator kMake>
struct PlacedGenerator {
  // On `device`; null: on the host. With 16 MiB of cache.
  static absl::StatusOr<std::unique_ptr<Model>> Load(std::unique_ptr<Device> device,
                                                     const std::string& directory,
                                                     const std::string& dtype = "fp32") {
    ASSIGN_OR_RETURN(ModelDirectory files, OpenModelDirectory(directory));
    LoadOptions options;
    options.dtype = dtype;
    options.cache_bytes = 16 << 20;
    return LoadGeneratorAt(std::move(device), std::move(files), options, kMake);
  }

  // Load, whose error fails the test; then null.
  static std::unique_ptr<Model> LoadOrFail(std::unique_ptr<Device> device,
                                           const std::string& directory,
                                           const std::string& dtype = "fp32") {
    absl::StatusOr<std::unique_ptr<Model>> model = Load(std::move(device), directory, dtype);
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : nullptr;
  }

  // On the device that is the host.
  static std::unique_ptr<Model> OnEmulator(const std::string& directory,
                                           const std::string& dtype = "fp32") {
    return LoadOrFail(Device::OnHost(kernels::cuda::testing::EmulatedPlugin()), directory, dtype);
  }

  // Answers these requests alike, after a calibration; nothing of them stays in the cache.
  static void ExpectAnswersOfTheHost(const std::string& directory,
                                     std::span<const Request> requests) {
    const std::unique_ptr<Model> host = LoadOrFail(nullptr, directory);
    const std::unique_ptr<Model> device = OnEmulator(directory);
    ASSERT_TRUE(host != nullptr && device != nullptr);
    ASSERT_TRUE(device->WarmUp().ok());
    EXPECT_EQ(device->info().device, "host");
    EXPECT_GT(device->info().memory_bytes, 0);
    for (size_t i = 0; i < requests.size(); ++i) {
      SCOPED_TRACE(i);
      ExpectPieces(Generate(*device, requests[i]).sequences, Generate(*host, requests[i]).sequences,
                   1e-4);
    }
    EXPECT_EQ(device->cache().used, 0);
  }

  // A model that devices cannot run, and why.
  static void ExpectTheCpu(const std::string& directory, const std::string& obstacle) {
    const std::unique_ptr<Model> model = OnEmulator(directory);
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(model->info().device, "cpu");
    ASSERT_FALSE(model->info().notes.empty());
    EXPECT_EQ(model->info().notes[0], "runs on the CPU: " + obstacle + " on host");
  }

  static void ExpectRefusalWithNeedAndLimit(const std::string& directory) {
    const kernels::cuda::PluginApi tight = EmulatedPluginWith(uint64_t{1} << 20);
    const absl::Status refused = Load(Device::OnHost(tight), directory).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
    for (const std::string part :
         {"on host: needs ", "weights", "workspace", "a cache of 16777216 bytes", "are free"}) {
      EXPECT_NE(std::string(refused.message()).find(part), std::string::npos) << refused;
    }
  }
};

}  // namespace longview::models
