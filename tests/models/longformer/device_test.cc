// Longformer's layers on a device: the whole forward on a device that is the host, against the
// golden cases and the model on the CPU; on CUDA's first device where there is one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "kernels/cuda/span/launch_shape.h"
#include "models/device/device_admission.h"
#include "models/directory/model_directory.h"
#include "models/encoder/family.h"
#include "models/encoder/model.h"
#include "models/forward/forward_part.h"
#include "models/status_macros.h"
#include "tests/kernels/cuda/support/emulated_plugin.h"
#include "tests/models/device/device_places.h"
#include "tests/models/golden/edited_model.h"
#include "tests/models/golden/golden_case.h"

namespace longview::models {
namespace {

using kernels::cuda::PluginApi;
using kernels::cuda::testing::EmulatedPlugin;

LoadOptions OptionsOf(const std::string& dtype) {
  LoadOptions options;
  options.dtype = dtype;
  return options;
}

absl::StatusOr<std::unique_ptr<Model>> LoadOn(std::unique_ptr<Device> device,
                                              const GoldenCase& golden, const std::string& dtype) {
  ASSIGN_OR_RETURN(ModelDirectory directory, OpenModelDirectory(golden.directory()));
  return LoadEncoderAt(std::move(device), std::move(directory), OptionsOf(dtype), MakeLongformer);
}

std::vector<Request> Requests(const GoldenCase& golden, Task task,
                              const std::vector<std::string>& tensors) {
  std::vector<Request> requests;
  for (int i = 0; i < golden.items(); ++i) {
    requests.push_back(TokenRequest(task, golden.Tokens(i), tensors));
  }
  return requests;
}

// Largest difference of two models' answers.
double Difference(const std::vector<Answer>& a, const std::vector<Answer>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t t = 0; t < a[i].tensors.size(); ++t) {
      const std::span<const float> want = b[i].tensors[t].floats();
      largest = std::max(largest,
                         LargestDifference(a[i].tensors[t].floats(), {want.begin(), want.end()}));
    }
  }
  return largest;
}

struct Case {
  std::string name;
  Task task;
  std::vector<std::string> tensors;
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

// Together they have folded and projected global rows, dilated heads, masked tokens, last layers
// for the first row, for some and for all.
const Case kCases[] = {
    {"classification", Task::kTextClassification, {"logits"}},
    {"classification_padded_batch", Task::kTextClassification, {"logits"}},
    {"dilated", Task::kTextClassification, {"logits", "last_hidden_state"}},
    {"head64_window128", Task::kTextClassification, {"logits", "last_hidden_state"}},
    {"embeddings", Task::kEmbedding, {"last_hidden_state"}},
    {"global_patterns", Task::kEmbedding, {"last_hidden_state"}},
    {"question_answering", Task::kQuestionAnswering, {"start_logits", "end_logits"}},
    {"masked_lm", Task::kFillMask, {"logits"}},
};

// How far an answer may be from the CPU's in fp32.
const std::pair<std::string, double> kBounds[] = {{"fp32", 2e-4}, {"bf16", 0.5}, {"fp16", 0.05}};

class DeviceLongformerTest : public ::testing::TestWithParam<Case> {};

TEST_P(DeviceLongformerTest, AnswersAreTheCpusAloneAndTogether) {
  const GoldenCase golden(GetParam().name);
  const std::vector<Request> requests = Requests(golden, GetParam().task, GetParam().tensors);
  const std::vector<Answer> expected = RunTogether(*golden.Load("fp32"), requests);
  for (const DevicePlace& place : PlacesOfDevices()) {
    for (const auto& [dtype, bound] : kBounds) {
      SCOPED_TRACE(place.name + ", " + dtype);
      const auto model = LoadOn(place.open(), golden, dtype);
      ASSERT_TRUE(model.ok()) << model.status();
      EXPECT_EQ((*model)->info().dtype, dtype);
      std::vector<Answer> alone;
      for (const Request& request : requests) alone.push_back(RunAlone(**model, request));
      const double error = Difference(alone, expected);
      EXPECT_LE(error, bound);
      EXPECT_GT((*model)->info().memory_bytes, 0);
      ExpectSameBits(RunTogether(**model, requests), alone);
      std::printf("%-28s %s on %s: %.2e from the CPU\n", GetParam().name.c_str(), dtype.c_str(),
                  place.name.c_str(), error);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, DeviceLongformerTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

// A directory that names fp16 is computed in it.
TEST(DeviceLongformerTypeTest, AutoIsWhatTheDirectoryNames) {
  const GoldenCase golden("classification");
  for (const auto& [stored, dtype] : {std::pair{"float32", "fp32"}, {"float16", "fp16"}}) {
    absl::StatusOr<ModelDirectory> directory = OpenModelDirectory(golden.directory());
    ASSERT_TRUE(directory.ok()) << directory.status();
    directory->common.stored_dtype = stored;
    const auto model = LoadEncoderAt(Device::OnHost(EmulatedPlugin()), *std::move(directory),
                                     OptionsOf("auto"), MakeLongformer);
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
  absl::StatusOr<ModelDirectory> directory = OpenModelDirectory(edited.Write());
  ASSERT_TRUE(directory.ok()) << directory.status();
  const auto model = LoadEncoderAt(Device::OnHost(EmulatedPlugin()), *std::move(directory),
                                   OptionsOf("auto"), MakeLongformer);
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
  const auto refused = LoadOn(Device::OnHost(short_of_one), golden, "fp32");
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
    for (Request& request : Requests(golden, Task::kEmbedding, {"last_hidden_state"})) {
      requests.push_back(std::move(request));
    }
  }
  const PluginApi ample = EmulatedPluginWith(uint64_t{1} << 34);
  const auto roomy = LoadOn(Device::OnHost(ample), golden, "fp32");
  const std::vector<Answer> together = RunTogether(**roomy, requests);
  const PluginApi one = EmulatedPluginWith(static_cast<uint64_t>(LeastBytes(golden)));
  const auto tight = LoadOn(Device::OnHost(one), golden, "fp32");
  ASSERT_TRUE(tight.ok()) << tight.status();
  EXPECT_LT((*tight)->info().memory_bytes, (*roomy)->info().memory_bytes);
  ExpectSameBits(RunTogether(**tight, requests), together);
}

TEST(DeviceLongformerMemoryTest, DroppedDocumentsChangeNothingForOthers) {
  const GoldenCase golden("global_patterns");
  const auto model = LoadOn(Device::OnHost(EmulatedPlugin()), golden, "fp32");
  ASSERT_TRUE(model.ok()) << model.status();
  ExpectDropsChangeNothing(**model, Requests(golden, Task::kEmbedding, {"last_hidden_state"}));
}

}  // namespace
}  // namespace longview::models
