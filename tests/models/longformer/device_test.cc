// Longformer on a device that is the host: the type it computes in, and memory.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "kernels/cuda/span/launch_shape.h"
#include "models/device/device_admission.h"
#include "models/encoder/model.h"
#include "models/forward/forward_part.h"
#include "tests/kernels/cuda/support/emulated_plugin.h"
#include "tests/models/device/device_places.h"
#include "tests/models/encoder/device_frame.h"
#include "tests/models/golden/edited_model.h"

namespace longview::models {
namespace {

using kernels::cuda::PluginApi;
using kernels::cuda::testing::EmulatedPlugin;

std::vector<Request> StatesOfAll(const GoldenCase& golden) {
  std::vector<Request> requests;
  for (int i = 0; i < golden.items(); ++i) {
    requests.push_back(TokenRequest(Task::kEmbedding, golden.Tokens(i), {"last_hidden_state"}));
  }
  return requests;
}

// A directory that names fp16 is computed in it.
TEST(DeviceLongformerTypeTest, AutoIsWhatTheDirectoryNames) {
  const GoldenCase golden("classification");
  for (const auto& [stored, dtype] : {std::pair{"float32", "fp32"}, {"float16", "fp16"}}) {
    absl::StatusOr<ModelDirectory> directory = OpenModelDirectory(golden.directory());
    ASSERT_TRUE(directory.ok()) << directory.status();
    directory->common.stored_dtype = stored;
    const auto model =
        LoadEncoderAt(Device::OnHost(EmulatedPlugin()), *std::move(directory), {}, MakeLongformer);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ((*model)->info().dtype, dtype);
  }
}

// Beside the device that was asked for, in the CPU's type.
TEST(DeviceLongformerTypeTest, AnOddWidthIsServedOnTheCpu) {
  EditedModel edited{GoldenCase("masked_lm")};
  edited.Cut(32, 31);
  edited.config["hidden_size"] = 31;
  edited.config["num_attention_heads"] = 1;
  const auto model =
      LoadOnDevice(Device::OnHost(EmulatedPlugin()), edited.Write(), "auto", MakeLongformer);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->info().device, "cpu");
  ASSERT_FALSE((*model)->info().notes.empty());
  EXPECT_EQ((*model)->info().notes[0], "runs on the CPU: width 31 must be even to run on host");
}

// Admission.

// Bytes of weights and one longest document of the fixture's model.
double LeastBytes(const GoldenCase& golden) {
  const auto directory = OpenModelDirectory(golden.directory());
  const std::unique_ptr<EncoderFamily> family = *MakeLongformer(*directory);
  DeviceStore store(Compute::kFp32);
  EXPECT_TRUE(family->Load(std::nullopt, &store).ok());
  const int tokens = MostTokens(*directory, family->facts().max_tokens);
  const std::unique_ptr<Device> device = Device::OnHost(EmulatedPlugin());
  const auto bytes = [&](EncoderPass::Sequences sequences) {
    auto pass = family->MakePass(Compute::kFp32, sequences, kernels::cuda::kDeviceTileRows);
    return ForwardPart(std::move(pass), *device, Compute::kFp32).bytes();
  };
  return static_cast<double>(store.bytes() + family->LongestBytes(tokens, bytes).device()) +
         kDeviceLibraryBytes;
}

TEST(DeviceLongformerMemoryTest, WhatDoesNotFitIsRefusedAtLoadWithNeedAndLimit) {
  const GoldenCase golden("classification");
  const auto least = static_cast<uint64_t>(LeastBytes(golden));
  const PluginApi short_of_one = EmulatedPluginWith(least - 1);
  const auto refused =
      LoadOnDevice(Device::OnHost(short_of_one), golden.directory(), "fp32", MakeLongformer);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  for (const std::string part : {" on host: needs ", "weights", "one document of ", "are free"}) {
    EXPECT_NE(std::string(refused.status().message()).find(part), std::string::npos) << part;
  }
}

// With memory for one document a batch of several runs in parts, and nothing shows.
TEST(DeviceLongformerMemoryTest, BatchesBeyondTheWorkspaceRunInParts) {
  const GoldenCase golden("global_patterns");
  std::vector<Request> requests;
  for (int times = 0; times < 3; ++times) {
    for (Request& request : StatesOfAll(golden)) requests.push_back(std::move(request));
  }
  const PluginApi ample = EmulatedPluginWith(uint64_t{1} << 34);
  const auto roomy =
      LoadOnDevice(Device::OnHost(ample), golden.directory(), "fp32", MakeLongformer);
  const std::vector<Answer> together = RunTogether(**roomy, requests);
  const PluginApi one = EmulatedPluginWith(static_cast<uint64_t>(LeastBytes(golden)));
  const auto tight = LoadOnDevice(Device::OnHost(one), golden.directory(), "fp32", MakeLongformer);
  ASSERT_TRUE(tight.ok()) << tight.status();
  EXPECT_LT((*tight)->info().memory_bytes, (*roomy)->info().memory_bytes);
  ExpectSameBits(RunTogether(**tight, requests), together);
}

TEST(DeviceLongformerMemoryTest, DroppedDocumentsChangeNothingForOthers) {
  const GoldenCase golden("global_patterns");
  ExpectDropsChangeNothing(golden.directory(), MakeLongformer, StatesOfAll(golden));
}

}  // namespace
}  // namespace longview::models
