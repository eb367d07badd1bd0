// Luna's language and translation models on a device: against their fixtures and the host, in any
// batch; on a device that is the host, and on CUDA's first device where there is one.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/models/generation/placed_generator.h"
#include "tests/models/golden/edited_model.h"

namespace longview::models {
namespace {

using Placed = PlacedGenerator<MakeLunaDecoder>;

std::vector<int32_t> Ids(const GoldenCase& golden, const std::string& name) {
  const std::vector<int64_t> wide = golden.Integers(name);
  return {wide.begin(), wide.end()};
}

struct Bound {
  const char* dtype;
  double of;
};

class DeviceLunaLm : public ::testing::TestWithParam<std::string> {
 protected:
  const GoldenCase golden_{GetParam(), "luna"};
};

TEST_P(DeviceLunaLm, LogitsAreThoseOfTheFixture) {
  const Bound bounds[] = {{"fp32", golden_.tolerance("logits")}, {"bf16", 0.3}, {"fp16", 0.05}};
  for (const DevicePlace& place : PlacesOfDevices()) {
    for (const auto& [dtype, bound] : bounds) {
      SCOPED_TRACE(place.name + ", " + dtype);
      const std::unique_ptr<Model> model =
          Placed::LoadOrFail(place.open(), golden_.directory(), dtype);
      ASSERT_NE(model, nullptr);
      for (int item = 0; item < golden_.items(); ++item) {
        const std::string suffix = "." + std::to_string(item);
        Request request = IdsRequest(Ids(golden_, "input_ids" + suffix), NewTokens(0));
        request.tensors = {"logits"};
        const Answer whole = Generate(*model, request);
        EXPECT_LE(LargestDifference(whole.tensors[0].floats(), golden_.Expected("logits" + suffix)),
                  bound)
            << item;
        EXPECT_EQ(Generate(*model, request, 5).tensors[0].data, whole.tensors[0].data) << item;
      }
    }
  }
}

TEST_P(DeviceLunaLm, AnswersAreTheHosts) {
  const std::vector<Request> requests = {SampledRequest({2, 9, 11, 5}, 1, 2, 30),
                                         SampledRequest({2, 9, 11, 6}, 2, 2, 30)};
  Placed::ExpectAnswersOfTheHost(golden_.directory(), requests);
}

TEST_P(DeviceLunaLm, ForksAndBatchMatesChangeNoBit) {
  const std::unique_ptr<Model> model = Placed::OnEmulator(golden_.directory(), "bf16");
  ASSERT_NE(model, nullptr);
  ExpectBatchInvariance(*model, 3, 2, 4, [](uint32_t i, int samples) {
    std::vector<int32_t> ids = {2, 9, 11, 30, 7, 5, 21, 33, 16};
    ids.resize(3 + 3 * i);
    return SampledRequest(ids, i, samples, 25);
  });
}

INSTANTIATE_TEST_SUITE_P(Cases, DeviceLunaLm,
                         ::testing::Values("causal_tied", "causal_untied_prenorm"),
                         [](const auto& info) { return info.param; });

class DeviceLunaTranslation : public ::testing::TestWithParam<std::string> {
 protected:
  Request Translate(int item, GenerationOptions options) const {
    Request request;
    request.task = Task::kText2TextGeneration;
    request.tokens = golden_.Tokens(item);
    request.generation = std::move(options);
    return request;
  }
  Request TeacherForced(int item) const {
    Request request = Translate(item, NewTokens(0));
    request.decoder_tokens.emplace().ids =
        Ids(golden_, "decoder_input_ids." + std::to_string(item));
    request.tensors = {"logits", "encoder_last_hidden_state"};
    return request;
  }
  Request Written(int item, int beams) const {
    GenerationOptions options = NewTokens(9);
    options.num_beams = beams;
    if (beams == 1) options.logprobs = 1;
    return Translate(item, options);
  }

  const GoldenCase golden_{GetParam(), "luna"};
};

TEST_P(DeviceLunaTranslation, StatesAndLogits) {
  const Bound bounds[] = {{"fp32", 0}, {"bf16", 0.3}, {"fp16", 0.05}};
  for (const DevicePlace& place : PlacesOfDevices()) {
    for (const auto& [dtype, rounded] : bounds) {
      SCOPED_TRACE(place.name + ", " + dtype);
      const std::unique_ptr<Model> model =
          Placed::LoadOrFail(place.open(), golden_.directory(), dtype);
      ASSERT_NE(model, nullptr);
      for (int item = 0; item < golden_.items(); ++item) {
        const std::string suffix = "." + std::to_string(item);
        const Answer answer = Generate(*model, TeacherForced(item));
        ASSERT_EQ(answer.tensors.size(), 2u);
        EXPECT_LE(
            LargestDifference(answer.tensors[0].floats(), golden_.Expected("logits" + suffix)),
            rounded > 0 ? rounded : golden_.tolerance("logits"))
            << item;
        EXPECT_LE(
            LargestDifference(answer.tensors[1].floats(), golden_.Expected("encoder_out" + suffix)),
            rounded > 0 ? rounded : golden_.tolerance("hidden"))
            << item;
      }
    }
  }
}

// Greedy tokens are chosen on the device, beams on the host.
TEST_P(DeviceLunaTranslation, AnswersAreTheHosts) {
  std::vector<Request> requests;
  for (int item = 0; item < golden_.items(); ++item) {
    for (const int beams : {1, 3}) requests.push_back(Written(item, beams));
  }
  Placed::ExpectAnswersOfTheHost(golden_.directory(), requests);
}

TEST_P(DeviceLunaTranslation, BatchMatesChangeNoBit) {
  const std::unique_ptr<Model> model = Placed::OnEmulator(golden_.directory(), "bf16");
  ASSERT_NE(model, nullptr);
  ExpectBatchInvariance(*model, std::min(golden_.items(), 3), 1, 0,
                        [&](uint32_t item, int) { return Written(static_cast<int>(item), 1); });
}

TEST_P(DeviceLunaTranslation, ADroppedDocumentHarmsNobody) {
  for (const bool on_device : {true, false}) {
    SCOPED_TRACE(on_device);
    const std::unique_ptr<Model> model = on_device
                                             ? Placed::OnEmulator(golden_.directory())
                                             : Placed::LoadOrFail(nullptr, golden_.directory());
    ASSERT_NE(model, nullptr);
    ExpectADroppedDocumentHarmsNobody(
        *model, 1, [&](uint32_t item, int) { return Written(static_cast<int>(item), 1); });
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, DeviceLunaTranslation,
                         ::testing::Values("mt_learned_embln", "mt_tied"),
                         [](const auto& info) { return info.param; });

TEST(DeviceLunaLoad, WhatDoesNotFitIsRefusedWithNeedAndLimit) {
  Placed::ExpectRefusalWithNeedAndLimit(GoldenCase("mt_tied", "luna").directory());
}

TEST(DeviceLunaLoad, MoreRowsThanADeviceSumsAreServedOnTheCpu) {
  EditedModel edited{GoldenCase("causal_tied", "luna")};
  constexpr int kRows = 257, kWidth = 32;
  edited.config["proj_len"] = kRows;
  for (auto& [name, tensor] : edited.tensors) {
    if (!name.ends_with("projected_embeddings")) continue;
    tensor.shape[0] = kRows;
    tensor.values.resize(kRows * kWidth, 0.25f);
  }
  Placed::ExpectTheCpu(edited.Write(), "proj_len 257 is above 256, the most rows of running sums");
  const std::unique_ptr<Model> model = Placed::OnEmulator(edited.directory());
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(Generate(*model, SampledRequest({2, 9}, 1, 1, 4)).sequences[0].token_ids.size(), 4u);
}

}  // namespace
}  // namespace longview::models
