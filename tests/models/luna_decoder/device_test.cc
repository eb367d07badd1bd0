// Luna's language and translation models on a device: against their fixtures and the host, in any
// company; on a device that is the host, and on CUDA's first device where there is one.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/luna_decoder/model.h"
#include "tests/kernels/cuda/support/twin.h"
#include "tests/models/device/device_places.h"
#include "tests/models/generation/company.h"
#include "tests/models/longformer/edited_model.h"

namespace longview::models {
namespace {

using kernels::cuda::testing::HostTwin;

absl::StatusOr<std::unique_ptr<Model>> LoadAt(std::unique_ptr<Device> device,
                                              const std::string& path, const std::string& dtype) {
  absl::StatusOr<ModelDirectory> directory = OpenModelDirectory(path);
  if (!directory.ok()) return directory.status();
  LoadOptions options;
  options.dtype = dtype;
  options.cache_bytes = 16 << 20;
  return LoadLunaDecoderAt(std::move(device), *std::move(directory), options);
}

std::unique_ptr<Model> LoadOrFail(std::unique_ptr<Device> device, const GoldenCase& golden,
                                  const std::string& dtype = "fp32") {
  absl::StatusOr<std::unique_ptr<Model>> model =
      LoadAt(std::move(device), golden.directory(), dtype);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : nullptr;
}

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
      const std::unique_ptr<Model> model = LoadOrFail(place.open(), golden_, dtype);
      ASSERT_NE(model, nullptr);
      for (int item = 0; item < golden_.items(); ++item) {
        const std::string suffix = "." + std::to_string(item);
        Request request = IdsRequest(Ids(golden_, "input_ids" + suffix), NewTokens(0));
        request.tensors = {"logits"};
        const Answer whole = Generate(*model, request);
        EXPECT_LE(
            LargestDifference(whole.tensors[0].floats(), golden_.Expected("logits" + suffix)),
            bound)
            << item;
        EXPECT_EQ(Generate(*model, request, 5).tensors[0].data, whole.tensors[0].data) << item;
      }
    }
  }
}

TEST_P(DeviceLunaLm, AnswersAreTheHosts) {
  const std::unique_ptr<Model> host = LoadOrFail(nullptr, golden_);
  const std::unique_ptr<Model> device = LoadOrFail(Device::OnHost(HostTwin()), golden_);
  ASSERT_TRUE(host != nullptr && device != nullptr);
  ASSERT_TRUE(device->WarmUp().ok());
  EXPECT_EQ(device->info().device, "host");
  EXPECT_GT(device->info().memory_bytes, 0);
  for (const uint32_t seed : {1, 2}) {
    const Request request = SampledRequest({2, 9, 11, static_cast<int32_t>(4 + seed)}, seed, 2, 30);
    ExpectPieces(Generate(*device, request).sequences, Generate(*host, request).sequences, 1e-4);
  }
  EXPECT_EQ(device->cache().used, 0);
}

TEST_P(DeviceLunaLm, ForksAndCompanyChangeNoBit) {
  const std::unique_ptr<Model> model = LoadOrFail(Device::OnHost(HostTwin()), golden_, "bf16");
  ASSERT_NE(model, nullptr);
  ExpectCompanyChangesNoBit(*model, 3, 2, 4, [](uint32_t i, int samples) {
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
      const std::unique_ptr<Model> model = LoadOrFail(place.open(), golden_, dtype);
      ASSERT_NE(model, nullptr);
      for (int item = 0; item < golden_.items(); ++item) {
        const std::string suffix = "." + std::to_string(item);
        const Answer answer = Generate(*model, TeacherForced(item));
        ASSERT_EQ(answer.tensors.size(), 2u);
        EXPECT_LE(
            LargestDifference(answer.tensors[0].floats(), golden_.Expected("logits" + suffix)),
            rounded > 0 ? rounded : golden_.tolerance("logits"))
            << item;
        EXPECT_LE(LargestDifference(answer.tensors[1].floats(),
                                    golden_.Expected("encoder_out" + suffix)),
                  rounded > 0 ? rounded : golden_.tolerance("hidden"))
            << item;
      }
    }
  }
}

// Greedy tokens are chosen on the device, beams on the host.
TEST_P(DeviceLunaTranslation, AnswersAreTheHosts) {
  const std::unique_ptr<Model> host = LoadOrFail(nullptr, golden_);
  const std::unique_ptr<Model> device = LoadOrFail(Device::OnHost(HostTwin()), golden_);
  ASSERT_TRUE(host != nullptr && device != nullptr);
  ASSERT_TRUE(device->WarmUp().ok());
  for (int item = 0; item < golden_.items(); ++item) {
    for (const int beams : {1, 3}) {
      SCOPED_TRACE(std::to_string(item) + ", beams " + std::to_string(beams));
      ExpectPieces(Generate(*device, Written(item, beams)).sequences,
                   Generate(*host, Written(item, beams)).sequences, 1e-4);
    }
  }
  EXPECT_EQ(device->cache().used, 0);
}

TEST_P(DeviceLunaTranslation, CompanyChangesNoBit) {
  const std::unique_ptr<Model> model = LoadOrFail(Device::OnHost(HostTwin()), golden_, "bf16");
  ASSERT_NE(model, nullptr);
  ExpectCompanyChangesNoBit(
      *model, std::min(golden_.items(), 3), 1, 0,
      [&](uint32_t item, int) { return Written(static_cast<int>(item), 1); });
}

TEST_P(DeviceLunaTranslation, ADroppedDocumentHarmsNobody) {
  for (const bool on_device : {true, false}) {
    SCOPED_TRACE(on_device);
    const std::unique_ptr<Model> model =
        LoadOrFail(on_device ? Device::OnHost(HostTwin()) : nullptr, golden_);
    ASSERT_NE(model, nullptr);
    ExpectADroppedDocumentHarmsNobody(
        *model, 1, [&](uint32_t item, int) { return Written(static_cast<int>(item), 1); });
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, DeviceLunaTranslation,
                         ::testing::Values("mt_learned_embln", "mt_tied"),
                         [](const auto& info) { return info.param; });

TEST(DeviceLunaLoad, WhatDoesNotFitIsRefusedWithNeedAndLimit) {
  const GoldenCase golden("mt_tied", "luna");
  const kernels::cuda::PluginApi tight = HostTwinWith(uint64_t{1} << 20);
  const absl::Status refused =
      LoadAt(Device::OnHost(tight), golden.directory(), "fp32").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  for (const std::string part : {"on host: needs ", "weights", "workspace", "are free"}) {
    EXPECT_NE(std::string(refused.message()).find(part), std::string::npos) << refused;
  }
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
  const absl::StatusOr<std::unique_ptr<Model>> model =
      LoadAt(Device::OnHost(HostTwin()), edited.Write(), "fp32");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->info().device, "cpu");
  ASSERT_FALSE((*model)->info().notes.empty());
  EXPECT_NE((*model)->info().notes[0].find("runs on the CPU"), std::string::npos);
  EXPECT_EQ(Generate(**model, SampledRequest({2, 9}, 1, 1, 4)).sequences[0].token_ids.size(), 4u);
}

}  // namespace
}  // namespace longview::models
