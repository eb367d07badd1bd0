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
#include "tests/models/generation/company.h"
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
  return SampledRequest(RandomIds(60 + seed, seed), seed, samples, 40);
}

TEST_P(DeviceLongformerLm, AnswersAreTheHosts) {
  const std::unique_ptr<Model> host = LoadOrFail(nullptr, files_);
  const std::unique_ptr<Model> device = LoadOrFail(Device::OnHost(HostTwin()), files_);
  ASSERT_TRUE(host != nullptr && device != nullptr);
  ASSERT_TRUE(device->WarmUp().ok());
  EXPECT_EQ(device->info().device, "host");
  EXPECT_GT(device->info().memory_bytes, 0);
  for (const uint32_t seed : {1, 2}) {
    ExpectPieces(Generate(*device, Sampled(seed, 2)).sequences,
                 Generate(*host, Sampled(seed, 2)).sequences, 1e-4);
  }
  EXPECT_EQ(device->cache().used, 0);
}

TEST_P(DeviceLongformerLm, ForksAndCompanyChangeNoBit) {
  const std::unique_ptr<Model> model = LoadOrFail(Device::OnHost(HostTwin()), files_, "bf16");
  ASSERT_NE(model, nullptr);
  ExpectCompanyChangesNoBit(*model, 3, 2, 64, Sampled);
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
