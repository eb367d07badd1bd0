// Panels of device linears, and linears on a device that is the host.
#include "models/device/device_linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "models/dense/compute_choice.h"
#include "models/device/device_admission.h"
#include "models/device/device_weights.h"
#include "models/model.h"
#include "tests/kernels/cuda/support/emulated_plugin.h"

namespace longview::models {
namespace {

constexpr DevicePanelSet kAll = {31};

TEST(DevicePanelsTest, TakeTheLeastTimePerRow) {
  EXPECT_EQ(NextDevicePanel(kAll, 1), 16);
  EXPECT_EQ(NextDevicePanel(kAll, 40), 64);
  EXPECT_EQ(NextDevicePanel(kAll, 300), 256);
  EXPECT_EQ(NextDevicePanel(kAll, 952), 1024);
  EXPECT_EQ(NextDevicePanel(kAll, 4000), 4096);
  EXPECT_EQ(NextDevicePanel(kAll, 1'000'000), 4096);
  EXPECT_EQ(NextDevicePanel({}, 1), 256);
  EXPECT_EQ(NextDevicePanel({}, 1'000'000), 256);
}

TEST(DevicePanelsTest, NeverReachFurtherPastTheEndThanBuffersDo) {
  for (uint32_t others = 0; others < 32; ++others) {
    const DevicePanelSet panels = {others | 4u};
    for (int64_t rows = 1; rows < 9000; rows += 7) {
      int64_t row = 0;
      while (row < rows) row += NextDevicePanel(panels, rows - row);
      ASSERT_LE(row - rows, kDevicePanelTail) << rows << " rows, panels " << panels.bits;
    }
  }
}

// A device that fails in `synchronize`: this once, or as everything does once a kernel has failed.
absl::Status WaitOnBroken(bool lost) {
  static constexpr kernels::cuda::Status kFault = 700;
  kernels::cuda::PluginApi broken = kernels::cuda::testing::EmulatedPlugin();
  broken.synchronize = [](kernels::cuda::Stream*) { return kFault; };
  if (lost) broken.free_memory = [](int32_t, uint64_t*) { return kFault; };
  return GuardDevice("family", [&] { Device::OnHost(broken)->Wait(); });
}

TEST(DeviceErrorTest, SaysWhetherTheDeviceIsLost) {
  const std::string lost(kDeviceLost);
  EXPECT_TRUE(WaitOnBroken(true).GetPayload(lost).has_value());
  EXPECT_FALSE(WaitOnBroken(false).GetPayload(lost).has_value());
  EXPECT_EQ(WaitOnBroken(false).code(), absl::StatusCode::kInternal);
  EXPECT_NE(WaitOnBroken(true).message().find("family: host: waiting"), absl::string_view::npos);
}

class DeviceLinearTest : public testing::TestWithParam<Compute> {};

TEST_P(DeviceLinearTest, IsTheProductAndRowsDoNotDependOnBatchMates) {
  const Compute compute = GetParam();
  const auto device = Device::OnHost(kernels::cuda::testing::EmulatedPlugin());
  const Device::Turn turn(*device);
  const int64_t in = 48, out = 80, rows = 700;
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 1);
  const auto values = [&](int64_t count) {
    std::vector<float> numbers(static_cast<size_t>(count));
    // Exact in all types.
    for (float& number : numbers) number = std::round(normal(random) * 16) / 16;
    return numbers;
  };
  const std::vector<float> weight = values(out * in), x = values(rows * in);
  const auto bytes = [&](int64_t columns) {
    return static_cast<size_t>((rows + kDevicePanelTail) * columns * ElementBytes(compute));
  };
  const DeviceBlock on_device(*device, static_cast<size_t>(out * in) * 4), xs(*device, bytes(in)),
      ys(*device, bytes(out));
  DeviceLinear linear;
  linear.weight = on_device.data();
  linear.in = in;
  linear.out = out;
  linear.compute = compute;
  WeightUpload upload(*device);
  upload.Put(weight, compute, linear.weight);
  upload.Put(x, compute, xs.data());
  DevicePanelRules rules;
  ASSERT_TRUE(ChooseDevicePanels(*device, "a linear", rules, linear).ok());
  EXPECT_TRUE(linear.panels.Has(2));
  EXPECT_EQ(rules.size(), 1u);
  const auto row = [&](int64_t first, int64_t count, int64_t i) {
    MultiplyRows(*device, linear, xs.data() + first * in * ElementBytes(compute), count, ys.data());
    const std::byte* at = ys.data() + i * out * ElementBytes(compute);
    return std::vector<std::byte>(at, at + out * ElementBytes(compute));
  };
  const std::vector<std::byte> alone = row(600, 1, 0);
  EXPECT_EQ(row(0, rows, 600), alone);
  EXPECT_EQ(row(123, 500, 477), alone);
  if (compute != Compute::kFp32) return;
  const auto* got = reinterpret_cast<const float*>(alone.data());
  for (int64_t n = 0; n < out; ++n) {
    double sum = 0;
    for (int64_t k = 0; k < in; ++k) sum += double{weight[n * in + k]} * x[600 * in + k];
    ASSERT_NEAR(got[n], sum, 1e-4) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DeviceLinearTest,
                         testing::Values(Compute::kFp32, Compute::kBf16, Compute::kFp16));

TEST(DeviceActivationTest, EveryActivationIsTheHosts) {
  const auto device = Device::OnHost(kernels::cuda::testing::EmulatedPlugin());
  const Device::Turn turn(*device);
  std::vector<float> bias;
  for (int i = -40; i <= 40; ++i) bias.push_back(static_cast<float>(i) / 8);
  const auto columns = static_cast<int64_t>(bias.size());
  DeviceLinear linear;
  linear.bias = bias.data();
  linear.out = columns;
  for (const Activation activation :
       {Activation::kNone, Activation::kGelu, Activation::kGeluTanh, Activation::kRelu,
        Activation::kSilu, Activation::kTanh, Activation::kQuickGelu}) {
    std::vector<float> expected(bias.size()), got(bias.size());
    ChooseRowKernels(Compute::kFp32).bias_act(expected.data(), bias.data(), columns, activation);
    AddBias(*device, linear, got.data(), 1, activation);
    for (size_t i = 0; i < bias.size(); ++i) {
      ASSERT_NEAR(got[i], expected[i], 2e-6) << static_cast<int>(activation) << " of " << bias[i];
    }
  }
}

TEST(DeviceAdmissionTest, CountsDocumentsUntilMemoryEnds) {
  const DeviceNeed need = {100e6, 50e6, 4096};
  const auto bytes = [](double documents) {
    return static_cast<int64_t>(100e6 + kDeviceLibraryBytes + documents * 50e6);
  };
  EXPECT_EQ(*DocumentsAtOnce("/m", "cuda:0", need, bytes(3.5), 8), 3);
  EXPECT_EQ(*DocumentsAtOnce("/m", "cuda:0", need, bytes(100), 8), 8);
  const auto refused = DocumentsAtOnce("/m", "cuda:0", need, bytes(0.9), 8);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(
      refused.status().message(),
      "/m on cuda:0: needs 687 MB (weights 100, one document of 4096 tokens 50, libraries 537), "
      "682 MB are free");
}

TEST(DeviceComputeTest, SixteenBitsWhereTheDirectorySaysSo) {
  EXPECT_EQ(ChooseDeviceCompute("auto", "", "float32")->compute, Compute::kFp32);
  EXPECT_EQ(ChooseDeviceCompute("auto", "", "bfloat16")->compute, Compute::kBf16);
  EXPECT_EQ(ChooseDeviceCompute("auto", "fp32", "bfloat16")->compute, Compute::kFp32);
  EXPECT_EQ(ChooseDeviceCompute("bf16", "", "float32")->compute, Compute::kBf16);
  EXPECT_EQ(ChooseDeviceCompute("auto", "", "float16")->compute, Compute::kFp16);
  EXPECT_EQ(ChooseDeviceCompute("auto", "fp16", "float32")->compute, Compute::kFp16);
  EXPECT_EQ(ChooseDeviceCompute("auto", "bf16", "float16")->compute, Compute::kBf16);
  EXPECT_EQ(ChooseDeviceCompute("bf16", "", "float16")->compute, Compute::kBf16);
  EXPECT_EQ(ChooseDeviceCompute("fp16", "", "float32")->compute, Compute::kFp16);
  EXPECT_EQ(ChooseDeviceCompute("fp32", "fp16", "float16")->compute, Compute::kFp32);
  EXPECT_FALSE(ChooseDeviceCompute("int8", "", "").ok());
}

TEST(DeviceFillTest, WeightsBeyondTheTypeAreRefusedByName) {
  const auto device = Device::OnHost(kernels::cuda::testing::EmulatedPlugin());
  const DeviceBlock block(*device, 64);
  DeviceFill fill(*device);
  const std::vector<float> largest = {1, -65504, 3};
  EXPECT_TRUE(fill.PutTyped("layer.0.weight", largest, Compute::kFp16, block.data()).ok());
  EXPECT_EQ(reinterpret_cast<const uint16_t*>(block.data())[1], 0xfbff);
  const std::vector<float> beyond = {1, -65505, 3};
  const absl::Status refused =
      fill.PutTyped("layer.0.weight", beyond, Compute::kFp16, block.data());
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  for (const std::string part : {"layer.0.weight", "-65505", "65504", "bf16"}) {
    EXPECT_NE(std::string(refused.message()).find(part), std::string::npos) << part;
  }
  EXPECT_TRUE(fill.PutTyped("layer.0.weight", beyond, Compute::kBf16, block.data()).ok());
  DeviceLinear linear;
  linear.weight = block.data();
  linear.in = 3;
  linear.out = 1;
  linear.compute = Compute::kFp16;
  EXPECT_EQ(fill.PutLinear("layer.1.weight", beyond, {}, linear).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(DeviceTest, WhatIsNotThereIsRefusedByName) {
  EXPECT_EQ(Device::Open("gpu").status().code(), absl::StatusCode::kInvalidArgument);
  const auto none = Device::Open("cuda:4096");
  EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(std::string(none.status().message()).find("cuda:4096"), std::string::npos);
}

}  // namespace
}  // namespace longview::models
