// Placement of a directory's model: the device, the type, and the notes about them.
#include "models/device/placement.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/kernels/cuda/support/emulated_plugin.h"

namespace longview::models {
namespace {

std::unique_ptr<Device> EmulatedDevice() {
  return Device::OnHost(kernels::cuda::testing::EmulatedPlugin());
}

Placement Placed(std::unique_ptr<Device> device, const DeviceObstacle& obstacle) {
  ModelDirectory directory;
  directory.common.stored_dtype = "float16";
  absl::StatusOr<Placement> placement =
      PlaceModel(std::move(device), obstacle, directory, LoadOptions(), {"first"});
  EXPECT_TRUE(placement.ok()) << placement.status();
  return placement.ok() ? *std::move(placement) : Placement();
}

TEST(PlacementTest, ADeviceComputesInTheTypeThatIsStored) {
  const Placement placement = Placed(EmulatedDevice(), std::nullopt);
  ASSERT_NE(placement.device, nullptr);
  EXPECT_EQ(placement.name, "host");
  EXPECT_EQ(placement.compute, Compute::kFp16);
  EXPECT_EQ(placement.notes, std::vector<std::string>{"first"});
}

TEST(PlacementTest, BehindAnObstacleItIsTheCpuInATypeOfItsOwn) {
  const Placement cpu = Placed(nullptr, "width 5 must be even to run");
  const Placement placement = Placed(EmulatedDevice(), "width 5 must be even to run");
  EXPECT_EQ(placement.device, nullptr);
  EXPECT_EQ(placement.name, "cpu");
  EXPECT_EQ(placement.compute, Compute::kFp32);
  EXPECT_EQ(placement.compute, cpu.compute);
  ASSERT_EQ(placement.notes.size(), cpu.notes.size() + 1);
  EXPECT_EQ(placement.notes[0], "first");
  EXPECT_EQ(placement.notes[1], "runs on the CPU: width 5 must be even to run on host");
}

TEST(PlacementTest, ObstaclesNameThePropertyAndTheLimit) {
  EXPECT_EQ(OddWidth("width ", 6), std::nullopt);
  EXPECT_EQ(OddWidth("width ", 7), "width 7 must be even to run");
  EXPECT_EQ(AboveLimit("f", 256, 256, "random features"), std::nullopt);
  EXPECT_EQ(AboveLimit("f", 257, 256, "random features"),
            "f257 is above 256, the most random features");
}

TEST(PlacementTest, WhatLoadingThrowsIsAStatus) {
  const std::unique_ptr<Device> device = EmulatedDevice();
  for (const bool on_device : {false, true}) {
    const Device* const on = on_device ? device.get() : nullptr;
    EXPECT_TRUE(LoadInTurn("m", on, [] { return absl::OkStatus(); }).ok());
    EXPECT_EQ(LoadInTurn("m", on, [] { return absl::NotFoundError("x"); }).message(), "x");
    const absl::Status thrown =
        LoadInTurn("m", on, []() -> absl::Status { throw std::runtime_error("y"); });
    EXPECT_EQ(thrown.message().substr(0, 2), "m:") << thrown;
  }
}

}  // namespace
}  // namespace longview::models
