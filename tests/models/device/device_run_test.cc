// Batches in parts on a device whose streams are late, by a family that is no more than its lists:
// layer l adds list l to a row of numbers. What reads a list too early, or too late, gets another
// sum.
#include "models/device/device_run.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "tests/kernels/cuda/support/emulated_plugin.h"
#include "tests/kernels/cuda/support/emulated_stream.h"

namespace longview::models {
namespace {

using kernels::cuda::PluginApi;

constexpr int kLayers = 3;

PluginApi LatePlugin(uint32_t seed) {
  PluginApi api = kernels::cuda::testing::EmulatedPlugin();
  kernels::cuda::testing::MakeStreamsLate(api, seed);
  return api;
}

// y += list, on the device's stream.
void Add(const Device& device, const float* list, float* y, int32_t count) {
  const kernels::cuda::BiasRows args = {
      y, list, 1, count, kernels::cuda::RowActivation::kNone, kernels::DType::kFloat32};
  device.Check(device.api().rows.bias(device.stream(), args), "adding");
}

// Lists 0 to kLayers of one item, of as many numbers as the item says.
float NumberOf(int item, int list, int i) {
  return static_cast<float>(1 + item * 100 + list * 1000 + i);
}

class Sums final : public DevicePart {
 public:
  Sums(const Device& device, std::vector<std::pair<int, int>> items)
      : device_(device), items_(std::move(items)) {
    for (const auto& [item, count] : items_) count_ += count;
    StagedLists lists(nullptr, nullptr);
    Carver carver(nullptr);
    Stage(lists);
    Carve(carver);
    bytes_ = {lists.used(), carver.used(), static_cast<size_t>(count_) * sizeof(float)};
  }

  DeviceRunBytes bytes() const override { return bytes_; }
  void Stage(StagedLists& lists) override {
    for (int list = 0; list <= kLayers; ++list) {
      std::vector<float> numbers;
      for (const auto& [item, count] : items_) {
        for (int i = 0; i < count; ++i) numbers.push_back(NumberOf(item, list, i));
      }
      lists_[list] = lists.Add(std::span<const float>(numbers));
    }
  }
  void Carve(Carver& carver) override { x_ = carver.Take<float>(count_); }
  int layers() const override { return kLayers; }
  void Embed() override {
    device_.Check(device_.api().fill_zero(device_.stream(), x_, bytes_.results), "zeros");
    Add(device_, lists_[0], x_, count_);
  }
  void RunLayer(int layer, const DeviceTimer& timer) override {
    timer.Run(&RunTimes::linears, [&] { Add(device_, lists_[layer + 1], x_, count_); });
  }
  void AddResults(DeviceResults& results) const override { results.Add(x_, bytes_.results); }

 private:
  const Device& device_;
  const std::vector<std::pair<int, int>> items_;  // And how many numbers they have.
  int32_t count_ = 0;
  DeviceRunBytes bytes_;
  const float* lists_[kLayers + 1] = {};
  float* x_ = nullptr;
};

class SumItems final : public DeviceItems {
 public:
  SumItems(const Device& device, std::vector<int> counts)
      : device_(device), counts_(std::move(counts)), sums_(counts_.size()) {}

  int size() const override { return static_cast<int>(counts_.size()); }
  std::string NameOf(int item) const override {
    return "an item of " + std::to_string(counts_[item]) + " numbers";
  }
  std::unique_ptr<DevicePart> Plan(std::span<const int> items) const override {
    std::vector<std::pair<int, int>> counted;
    for (const int item : items) counted.emplace_back(item, counts_[item]);
    return std::make_unique<Sums>(device_, std::move(counted));
  }
  void Keep(std::span<const int> items, const std::byte* results) override {
    parts_.emplace_back(items.begin(), items.end());
    for (const int item : items) {
      sums_[item].resize(static_cast<size_t>(counts_[item]));
      std::memcpy(sums_[item].data(), results, sums_[item].size() * sizeof(float));
      results += sums_[item].size() * sizeof(float);
    }
  }

  // By item; empty if it never came back.
  const std::vector<std::vector<float>>& sums() const { return sums_; }
  // Items of the parts that came back.
  const std::vector<std::vector<int>>& parts() const { return parts_; }

  void ExpectSums(int item) const {
    ASSERT_EQ(sums_[item].size(), static_cast<size_t>(counts_[item])) << item;
    for (int i = 0; i < counts_[item]; ++i) {
      float sum = 0;
      for (int list = 0; list <= kLayers; ++list) sum += NumberOf(item, list, i);
      ASSERT_EQ(sums_[item][i], sum) << "item " << item << ", number " << i;
    }
  }

 private:
  const Device& device_;
  const std::vector<int> counts_;
  std::vector<std::vector<float>> sums_;
  std::vector<std::vector<int>> parts_;
};

// Room for items with so many numbers altogether.
DeviceRunBytes RoomFor(const Device& device, int numbers) {
  return SumItems(device, {numbers}).Plan(std::vector<int>{0})->bytes();
}

constexpr uint32_t kSeeds = 60;

TEST(DeviceRunTest, PartsGetTheirOwnListsInWhateverOrderStreamsRun) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const PluginApi api = LatePlugin(seed);
    const auto device = Device::OnHost(api);
    DeviceWorkspace workspace(*device, RoomFor(*device, 50));
    for (int batch = 0; batch < 3; ++batch) {
      SumItems items(*device, {20, 7, 33, 50, 1, 49, 16, 40, 9});
      DeviceRun run(*device, workspace, items, nullptr);
      int advances = 1;
      while (run.Advance()) ++advances;
      for (int i = 0; i < items.size(); ++i) items.ExpectSums(i);
      EXPECT_GT(items.parts().size(), 4u);
      EXPECT_EQ(advances, kLayers * static_cast<int>(items.parts().size()));
      EXPECT_FALSE(run.Advance());
    }
  }
}

TEST(DeviceRunTest, WhatFitsIsOnePart) {
  const auto device = Device::OnHost(kernels::cuda::testing::EmulatedPlugin());
  DeviceWorkspace workspace(*device, RoomFor(*device, 60));
  SumItems items(*device, {20, 7, 33});
  RunTimes times;
  DeviceRun run(*device, workspace, items, &times);
  while (run.Advance()) {
  }
  EXPECT_EQ(items.parts(), (std::vector<std::vector<int>>{{0, 1, 2}}));
  for (int i = 0; i < items.size(); ++i) items.ExpectSums(i);
  EXPECT_GT(times.linears, 0);
  EXPECT_GT(times.rest, 0);
  EXPECT_EQ(times.attention, 0);
}

TEST(DeviceRunTest, DroppedItemsEnterNoPartAndPartsNobodyWaitsForAreLeftOut) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const PluginApi api = LatePlugin(seed);
    const auto device = Device::OnHost(api);
    DeviceWorkspace workspace(*device, RoomFor(*device, 20));
    SumItems items(*device, {10, 10, 10, 10, 20, 20, 10, 10});
    DeviceRun run(*device, workspace, items, nullptr);
    run.Drop(1);
    ASSERT_TRUE(run.Advance());  // The first of items 0, 2 and 3; the next part is staged.
    ASSERT_TRUE(run.Advance());
    run.Drop(2);
    run.Drop(3);
    run.Drop(4);
    run.Drop(6);
    while (run.Advance()) {
    }
    EXPECT_EQ(items.parts(), (std::vector<std::vector<int>>{{0}, {5}, {7}}));
    for (const int i : {0, 5, 7}) items.ExpectSums(i);
    for (const int i : {1, 2, 3, 4, 6}) EXPECT_TRUE(items.sums()[i].empty()) << i;
  }
}

TEST(DeviceRunTest, NothingRunsWhereNobodyWaits) {
  const auto device = Device::OnHost(kernels::cuda::testing::EmulatedPlugin());
  DeviceWorkspace workspace(*device, RoomFor(*device, 20));
  SumItems items(*device, {10, 30});
  DeviceRun run(*device, workspace, items, nullptr);
  run.Drop(0);
  run.Drop(1);
  EXPECT_FALSE(run.Advance());
  EXPECT_TRUE(items.parts().empty());
  EXPECT_TRUE(workspace.Take());
}

TEST(DeviceRunTest, AnItemTooLargeByItselfIsAnErrorWithNeedAndLimit) {
  const auto device = Device::OnHost(kernels::cuda::testing::EmulatedPlugin());
  const DeviceRunBytes room = RoomFor(*device, 20);
  DeviceWorkspace workspace(*device, room);
  SumItems items(*device, {10, 300});
  const DeviceRunBytes need = RoomFor(*device, 300);
  std::string message;
  {
    DeviceRun run(*device, workspace, items, nullptr);
    try {
      while (run.Advance()) {
      }
    } catch (const DeviceError& error) {
      message = error.what();
    }
  }
  for (const std::string& part :
       {std::string("an item of 300 numbers"), std::to_string(need.device()),
        std::to_string(need.results), std::to_string(room.device()), device->name()}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
  }
  EXPECT_TRUE(workspace.Take());
}

TEST(DeviceRunTest, OneBatchHasTheWorkspaceUntilItEndsOrGoes) {
  const PluginApi api = LatePlugin(1);
  const auto device = Device::OnHost(api);
  DeviceWorkspace workspace(*device, RoomFor(*device, 20));
  SumItems first(*device, {10, 20, 15}), second(*device, {20, 20});
  {
    DeviceRun abandoned(*device, workspace, first, nullptr);
    ASSERT_TRUE(abandoned.Advance());
    DeviceRun early(*device, workspace, second, nullptr);
    EXPECT_THROW(early.Advance(), DeviceError);
  }
  DeviceRun run(*device, workspace, second, nullptr);
  while (run.Advance()) {
  }
  second.ExpectSums(0);
  second.ExpectSums(1);
}

// Without any wait of the host between parts, as a frame might have it that waits less.
TEST(DeviceListSlotsTest, PlacesAreRewrittenOnlyWhenNobodyReadsThem) {
  constexpr int kCount = 40, kRounds = 12;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const PluginApi api = LatePlugin(seed);
    const auto device = Device::OnHost(api);
    DeviceListSlots slots(*device, kCount * sizeof(float));
    const DeviceBlock sums(*device, kRounds * kCount * sizeof(float));
    const PinnedBlock results(*device, sums.bytes());
    device->Check(device->api().fill_zero(device->stream(), sums.data(), sums.bytes()), "zeros");
    for (int round = 0; round < kRounds; ++round) {
      const std::vector<float> numbers(kCount, static_cast<float>(round + 1));
      StagedLists lists = slots.Begin();
      const float* list = lists.Add(std::span<const float>(numbers));
      slots.Send(lists);
      if (round % 5 == 3) continue;  // Replaced by the next round's.
      slots.Enter();
      auto* sum = reinterpret_cast<float*>(sums.data()) + round * kCount;
      for (int layer = 0; layer < kLayers; ++layer) Add(*device, list, sum, kCount);
      slots.Leave();
    }
    device->Check(
        device->api().copy_out(device->stream(), results.data(), sums.data(), sums.bytes()),
        "sums");
    device->Wait();
    for (int round = 0; round < kRounds; ++round) {
      const auto* sum = reinterpret_cast<const float*>(results.data()) + round * kCount;
      for (int i = 0; i < kCount; ++i) {
        ASSERT_EQ(sum[i], round % 5 == 3 ? 0 : static_cast<float>(kLayers * (round + 1))) << round;
      }
    }
  }
}

bool IsAligned(const void* at) { return reinterpret_cast<uintptr_t>(at) % kDeviceAlignment == 0; }

TEST(DeviceWorkspaceTest, WhateverIsAskedForItsRegionsAreAligned) {
  const auto device = Device::OnHost(kernels::cuda::testing::EmulatedPlugin());
  for (size_t odd = 1; odd < 700; odd += 3) {
    DeviceWorkspace workspace(*device, {odd, odd + 1, odd + 2});
    EXPECT_TRUE(IsAligned(workspace.buffers()));
    EXPECT_TRUE(IsAligned(workspace.pinned_results()));
    for (int slot = 0; slot < 2; ++slot) {
      StagedLists lists = workspace.lists().Begin();
      std::byte* written = nullptr;
      EXPECT_TRUE(IsAligned(lists.AddBytes(odd, [&](std::byte* to) { written = to; }))) << odd;
      EXPECT_TRUE(IsAligned(written)) << odd;
      std::memset(written, 0, odd);
      workspace.lists().Send(lists);
      workspace.lists().Enter();
    }
  }
}

TEST(DeviceWorkspaceTest, RoomForSeveralIsNoMoreThanThatOftenRoomForOne) {
  for (size_t odd = 1; odd < 600; ++odd) {
    const DeviceRunBytes one = {odd, 3 * odd, odd + 1};
    EXPECT_LE(one.Times(5).device(), 5 * one.device());
    EXPECT_TRUE(one.Fits(one.Times(5)));
    EXPECT_FALSE(one.Times(2).Fits(one));
  }
}

}  // namespace
}  // namespace longview::models
