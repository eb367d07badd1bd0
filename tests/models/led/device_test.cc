// LED on a device: what the host answers, whoever else is there; on a device that is the host, and
// on CUDA's first device where there is one.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/models/generation/placed_generator.h"
#include "tests/models/golden/edited_model.h"
#include "tests/models/led/led_case.h"

namespace longview::models {
namespace {

using Placed = PlacedGenerator<MakeLed>;

const std::vector<std::string> kTensors = {"logits", "encoder_last_hidden_state"};

class DeviceLed : public ::testing::TestWithParam<std::string> {
 protected:
  const GoldenCase golden_{GetParam(), "led"};
};

TEST_P(DeviceLed, StatesAndLogits) {
  for (const DevicePlace& place : PlacesOfDevices()) {
    SCOPED_TRACE(place.name);
    const std::unique_ptr<Model> model = Placed::LoadOrFail(place.open(), golden_.directory());
    ASSERT_NE(model, nullptr);
    for (int item = 0; item < golden_.items(); ++item) {
      SCOPED_TRACE(item);
      const std::string suffix = "." + std::to_string(item);
      const Answer answer = Generate(*model, Forced(golden_, item, kTensors));
      ASSERT_EQ(answer.tensors.size(), 2u);
      EXPECT_LE(LargestDifference(answer.tensors[0].floats(), golden_.Expected("logits" + suffix)),
                golden_.tolerance("logits"));
      EXPECT_LE(LargestDifference(answer.tensors[1].floats(),
                                  golden_.Expected("encoder_last_hidden_state" + suffix)),
                golden_.tolerance("encoder_last_hidden_state"));
    }
  }
}

TEST_P(DeviceLed, RoundedLogitsAreNear) {
  const std::pair<const char*, double> kBounds[] = {{"bf16", 0.3}, {"fp16", 0.05}};
  for (const auto& [dtype, bound] : kBounds) {
    const std::unique_ptr<Model> model = Placed::OnEmulator(golden_.directory(), dtype);
    ASSERT_NE(model, nullptr);
    for (int item = 0; item < golden_.items(); ++item) {
      const Answer answer = Generate(*model, Forced(golden_, item, kTensors));
      EXPECT_LE(LargestDifference(answer.tensors[0].floats(),
                                  golden_.Expected("logits." + std::to_string(item))),
                bound)
          << dtype << " " << item;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, DeviceLed, ::testing::ValuesIn(ForwardCases()),
                         [](const auto& info) { return info.param; });

Request Written(const GoldenCase& golden, int item, int beams) {
  GenerationOptions options = NewTokens(16);
  options.ignore_eos = true;
  options.num_beams = beams;
  if (beams == 1) options.logprobs = 1;
  return DocumentRequest(golden, item, options);
}

// Greedy tokens are chosen on the device, beams on the host.
TEST(DeviceLedModel, AnswersAreTheHosts) {
  const GoldenCase golden("generate", "led");
  std::vector<Request> requests;
  for (int item = 0; item < golden.items(); ++item) {
    for (const int beams : {1, 3}) requests.push_back(Written(golden, item, beams));
  }
  Placed::ExpectAnswersOfTheHost(golden.directory(), requests);
}

TEST(DeviceLedModel, GreedyOutputsHaveTheHostsScores) {
  const GoldenCase golden("generate", "led");
  const std::unique_ptr<Model> host = Placed::LoadOrFail(nullptr, golden.directory());
  const std::unique_ptr<Model> device = Placed::OnEmulator(golden.directory());
  ASSERT_TRUE(host != nullptr && device != nullptr);
  const Request request = DocumentRequest(golden, 0, NewTokens(16));
  const Piece want = Generate(*host, request).sequences[0];
  EXPECT_LT(want.score, 0);
  EXPECT_NEAR(Generate(*device, request).sequences[0].score, want.score, 1e-4);
}

TEST(DeviceLedModel, BatchMatesChangeNoBit) {
  const GoldenCase golden("generate", "led");
  const std::unique_ptr<Model> model = Placed::OnEmulator(golden.directory(), "bf16");
  ASSERT_NE(model, nullptr);
  ExpectBatchInvariance(*model, std::min(golden.items(), 3), 1, 0, [&](uint32_t item, int) {
    return Written(golden, static_cast<int>(item), 1);
  });
}

TEST(DeviceLedModel, ADroppedDocumentHarmsNobody) {
  const GoldenCase golden("generate", "led");
  for (const bool on_device : {true, false}) {
    SCOPED_TRACE(on_device);
    const std::unique_ptr<Model> model = on_device
                                             ? Placed::OnEmulator(golden.directory())
                                             : Placed::LoadOrFail(nullptr, golden.directory());
    ASSERT_NE(model, nullptr);
    ExpectADroppedDocumentHarmsNobody(
        *model, 1, [&](uint32_t item, int) { return Written(golden, static_cast<int>(item), 1); });
  }
}

TEST(DeviceLedModel, WhatDoesNotFitIsRefusedWithNeedAndLimit) {
  Placed::ExpectRefusalWithNeedAndLimit(GoldenCase("generate", "led").directory());
}

TEST(DeviceLedModel, AnOddWidthIsServedOnTheCpu) {
  EditedModel edited{GoldenCase("generate", "led")};
  edited.Cut(32, 31);
  edited.config["d_model"] = 31;
  edited.config["encoder_attention_heads"] = edited.config["decoder_attention_heads"] = 1;
  Placed::ExpectTheCpu(edited.Write(), "width 31 must be even to run");
}

}  // namespace
}  // namespace longview::models
