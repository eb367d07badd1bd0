#include "models/ops/weight_placer.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "models/device/device.h"
#include "tests/kernels/cuda/support/emulated_plugin.h"
#include "tests/models/checkpoint/safetensors_file.h"
#include "tests/support/temp_directory.h"

namespace longview::models {
namespace {

using kernels::cuda::testing::EmulatedPlugin;

constexpr int64_t kRows = 256, kWidth = 64;

std::vector<float> Numbers() {
  std::vector<float> values(kRows * kWidth);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

std::string OneTable() {
  const std::vector<float> values = Numbers();
  const size_t bytes = values.size() * sizeof(float);
  return SafetensorsBytes(R"({"table":{"dtype":"F32","shape":[256,64],"data_offsets":[0,)" +
                              std::to_string(bytes) + "]}}",
                          std::string(reinterpret_cast<const char*>(values.data()), bytes));
}

// Whether this process has pages of its own in place of a table's.
bool KeepsATable() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("longview-table") != std::string::npos) return true;
  }
  return false;
}

class WeightPlacerTest : public ::testing::Test {
 protected:
  WeightPlacerTest()
      : path_(directory_.Write("model.safetensors", OneTable())),
        checkpoint_(Checkpoint::Open(path_)) {}

  // Counts with one loader, fills with another, as families do; what the second one says.
  template <typename Place>
  absl::Status OnDevice(DeviceStore& store, Place&& place) {
    WeightLoader counts(*checkpoint_, "here", std::nullopt);
    WeightPlacer counted(counts, &store);
    place(counts, counted);
    store.Allocate(*device_);
    WeightLoader reads(*checkpoint_, "here", Compute::kFp32);
    WeightPlacer filled(reads, &store);
    place(reads, filled);
    device_->Wait();
    return reads.Finish();
  }

  const testing::TempDirectory directory_;
  const std::string path_;
  const absl::StatusOr<Checkpoint> checkpoint_;
  const std::unique_ptr<Device> device_ = Device::OnHost(EmulatedPlugin());
  const Device::Turn turn_{*device_};
};

TEST_F(WeightPlacerTest, TheHostKeepsATable) {
  ASSERT_TRUE(checkpoint_.ok()) << checkpoint_.status();
  WeightLoader load(*checkpoint_, "here", Compute::kFp32);
  const Table table =
      WeightPlacer(load, nullptr).Stored(load.Get("table", {kRows, kWidth}), kRows, kWidth);
  EXPECT_TRUE(load.Finish().ok()) << load.Finish();
  EXPECT_EQ(load.memory_bytes(), 4.0 * kRows * kWidth);
  EXPECT_TRUE(KeepsATable());
  std::filesystem::resize_file(path_, 100);
  std::vector<float> row(kWidth);
  table.CopyRow(3, row.data());
  EXPECT_EQ(row[5], 3.0f * kWidth + 5);
}

TEST_F(WeightPlacerTest, ADevicesTableLeavesNothingOnTheHost) {
  ASSERT_TRUE(checkpoint_.ok()) << checkpoint_.status();
  DeviceStore store(Compute::kFp32);
  Table table;
  const absl::Status status = OnDevice(store, [&](WeightLoader& load, WeightPlacer& place) {
    table = place.Stored(load.Get("table", {kRows, kWidth}), kRows, kWidth);
  });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_FALSE(KeepsATable());
  const auto block = store.TakeBlock();
  const std::vector<float> values = Numbers();
  EXPECT_EQ(std::vector<float>(table.device(), table.device() + values.size()), values);
}

TEST_F(WeightPlacerTest, ADevicesTableOfAShortenedFileIsAnError) {
  ASSERT_TRUE(checkpoint_.ok()) << checkpoint_.status();
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) / 2);
  DeviceStore store(Compute::kFp32);
  const absl::Status status = OnDevice(store, [&](WeightLoader& load, WeightPlacer& place) {
    (void)place.Stored(load.Get("table", {kRows, kWidth}), kRows, kWidth);
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_NE(status.message().find("\"table\""), std::string::npos) << status;
}

TEST_F(WeightPlacerTest, RowsOfPixelsEndInZerosOnADevice) {
  ASSERT_TRUE(checkpoint_.ok()) << checkpoint_.status();
  constexpr int64_t kOut = 2, kIn = 147;
  DeviceStore store(Compute::kFp32);
  Weight weight;
  const std::vector<float> ones(kOut * kIn, 1.0f);
  const absl::Status status = OnDevice(store, [&](WeightLoader& load, WeightPlacer& place) {
    (void)load.Get("table", {kRows, kWidth});
    weight = place.Pixels("pixels", load.reads() ? ones : std::vector<float>(),
                          std::vector<float>(kOut), kOut, kIn);
  });
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(weight.device.in, 160);
  const auto block = store.TakeBlock();
  const auto* const values = static_cast<const float*>(weight.device.weight);
  for (int64_t i = 0; i < kOut * 160; ++i) {
    ASSERT_EQ(values[i], i % 160 < kIn ? 1.0f : 0.0f) << i;
  }
}

}  // namespace
}  // namespace longview::models
