// The autoregressive Longformer on a device: against its definition and the host, in any cut and
// any company; on a device that is the host, and on CUDA's first device where there is one.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/longformer_lm/model.h"
#include "tests/kernels/cuda/support/twin.h"
#include "tests/models/device/device_places.h"
#include "tests/models/longformer_lm/causal_model.h"
#include "tests/models/longformer_lm/naive_longformer.h"

namespace longview::models {
namespace {

using kernels::cuda::testing::HostTwin;

LoadOptions OptionsOf(const std::string& dtype) {
  LoadOptions options;
  options.dtype = dtype;
  options.cache_bytes = 16 << 20;
  return options;
}

absl::StatusOr<std::unique_ptr<Model>> LoadAt(std::unique_ptr<Device> device,
                                              const CausalModel& files,
                                              const std::string& dtype = "fp32") {
  absl::StatusOr<ModelDirectory> directory = OpenModelDirectory(files.Write());
  if (!directory.ok()) return directory.status();
  return LoadLongformerLmAt(std::move(device), *std::move(directory), OptionsOf(dtype));
}

std::unique_ptr<Model> LoadOrFail(std::unique_ptr<Device> device, const CausalModel& files,
                                  const std::string& dtype = "fp32") {
  absl::StatusOr<std::unique_ptr<Model>> model = LoadAt(std::move(device), files, dtype);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : nullptr;
}

class DeviceLongformerLm : public ::testing::TestWithParam<size_t> {
 protected:
  const Pattern pattern_ = Patterns()[GetParam()];
  const CausalModel files_{pattern_.dilation, pattern_.windows};
};

// Logits have a standard deviation of about 1.
TEST_P(DeviceLongformerLm, LogitsAreThoseOfTheDefinition) {
  const std::pair<const char*, double> kBounds[] = {{"fp32", 1e-4}, {"bf16", 0.3}, {"fp16", 0.05}};
  for (const DevicePlace& place : PlacesOfDevices()) {
    for (const auto& [dtype, bound] : kBounds) {
      SCOPED_TRACE(place.name + ", " + dtype);
      const std::unique_ptr<Model> model = LoadOrFail(place.open(), files_, dtype);
      ASSERT_NE(model, nullptr);
      for (const size_t tokens : {1, 64, 150}) {
        const std::vector<int32_t> ids = RandomIds(tokens, static_cast<uint32_t>(tokens));
        const Answer answer = Generate(*model, Scored(ids));
        EXPECT_LE(LargestDifference(answer.tensors[0].floats(), NaiveLogits(files_, ids)), bound)
            << tokens;
      }
    }
  }
}

TEST_P(DeviceLongformerLm, CutsOfAPromptChangeNoBit) {
  for (const char* dtype : {"fp32", "bf16", "fp16"}) {
    const std::unique_ptr<Model> model = LoadOrFail(Device::OnHost(HostTwin()), files_, dtype);
    ASSERT_NE(model, nullptr);
    const std::vector<int32_t> ids = RandomIds(300, 2);
    const Answer whole = Generate(*model, Scored(ids));
    for (const int cut : {64, 50}) {
      EXPECT_EQ(whole.tensors[0].data, Generate(*model, Scored(ids), cut).tensors[0].data)
          << dtype << " " << cut;
    }
  }
}

Request Sampled(uint32_t seed, int samples) {
  GenerationOptions options = NewTokens(40);
  options.temperature = 0.9;
  options.seed = seed;
  options.num_return_sequences = samples;
  options.logprobs = 2;
  return IdsRequest(RandomIds(60 + seed, seed), options);
}

TEST_P(DeviceLongformerLm, AnswersAreTheHosts) {
  const std::unique_ptr<Model> host = LoadOrFail(nullptr, files_);
  const std::unique_ptr<Model> device = LoadOrFail(Device::OnHost(HostTwin()), files_);
  ASSERT_TRUE(host != nullptr && device != nullptr);
  ASSERT_TRUE(device->WarmUp().ok());
  EXPECT_EQ(device->info().device, "host");
  EXPECT_GT(device->info().memory_bytes, 0);
  for (const uint32_t seed : {1, 2}) {
    const std::vector<Piece> want = Generate(*host, Sampled(seed, 2)).sequences;
    const std::vector<Piece> got = Generate(*device, Sampled(seed, 2)).sequences;
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(got[i].token_ids, want[i].token_ids);
      ASSERT_EQ(got[i].logprobs.size(), want[i].logprobs.size());
      for (size_t t = 0; t < want[i].logprobs.size(); ++t) {
        EXPECT_NEAR(got[i].logprobs[t].logprob, want[i].logprobs[t].logprob, 1e-4);
      }
    }
  }
  EXPECT_EQ(device->cache().used, 0);
}

TEST_P(DeviceLongformerLm, ForksAndCompanyChangeNoBit) {
  const std::unique_ptr<Model> model = LoadOrFail(Device::OnHost(HostTwin()), files_, "bf16");
  ASSERT_NE(model, nullptr);
  std::vector<Answer> alone;
  for (uint32_t i = 0; i < 3; ++i) alone.push_back(Generate(*model, Sampled(i, 1)));
  std::vector<Live> lives;
  for (uint32_t i = 0; i < 3; ++i) lives.push_back(StartOn(*model, Sampled(i, 2)));
  std::vector<Live*> all;
  for (Live& live : lives) all.push_back(&live);
  while (!lives[0].generation->done()) StepOnce(*model, all, 64);
  for (uint32_t i = 0; i < 3; ++i) {
    const absl::StatusOr<Answer> answer = Finish(*model, lives[i]);
    ASSERT_TRUE(answer.ok()) << answer.status();
    const Piece &got = answer->sequences[0], &want = alone[i].sequences[0];
    EXPECT_EQ(got.token_ids, want.token_ids);
    for (size_t t = 0; t < want.logprobs.size(); ++t) {
      EXPECT_EQ(got.logprobs[t].logprob, want.logprobs[t].logprob) << t;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Patterns, DeviceLongformerLm, ::testing::Range<size_t>(0, 4),
                         [](const auto& info) { return Patterns()[info.param].name; });

TEST(DeviceLongformerLmLoad, WhatDoesNotFitIsRefusedWithNeedAndLimit) {
  const CausalModel files;
  const kernels::cuda::PluginApi tight = HostTwinWith(uint64_t{1} << 20);
  const absl::Status refused = LoadAt(Device::OnHost(tight), files).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  for (const std::string part :
       {"on host: needs ", "weights", "workspace", "a cache of 16777216 bytes", "are free"}) {
    EXPECT_NE(std::string(refused.message()).find(part), std::string::npos) << refused;
  }
}

}  // namespace
}  // namespace longview::models
