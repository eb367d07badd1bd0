// The autoregressive Composite Slice Transformer on a device: against its fixtures and the host, in
// any cut and any company; on a device that is the host, and on CUDA's first device where there is
// one.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/cst/lm_model.h"
#include "tests/kernels/cuda/support/twin.h"
#include "tests/models/device/device_places.h"
#include "tests/models/generation/company.h"
#include "tests/models/longformer/golden_case.h"

namespace longview::models {
namespace {

using kernels::cuda::testing::HostTwin;

absl::StatusOr<std::unique_ptr<Model>> LoadAt(std::unique_ptr<Device> device,
                                              const GoldenCase& golden, const std::string& dtype) {
  absl::StatusOr<ModelDirectory> directory = OpenModelDirectory(golden.directory());
  if (!directory.ok()) return directory.status();
  LoadOptions options;
  options.dtype = dtype;
  options.cache_bytes = 16 << 20;
  return LoadCstLmAt(std::move(device), *std::move(directory), options);
}

std::unique_ptr<Model> LoadOrFail(std::unique_ptr<Device> device, const GoldenCase& golden,
                                  const std::string& dtype = "fp32") {
  absl::StatusOr<std::unique_ptr<Model>> model = LoadAt(std::move(device), golden, dtype);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : nullptr;
}

class DeviceCstLm : public ::testing::TestWithParam<std::string> {
 protected:
  std::vector<int32_t> Ids(int item) const {
    const std::vector<int64_t> wide = golden_.Integers("input_ids." + std::to_string(item));
    return {wide.begin(), wide.end()};
  }
  Request Scored(int item) const {
    Request request = IdsRequest(Ids(item), NewTokens(0));
    request.tensors = {"logits"};
    return request;
  }

  const GoldenCase golden_{GetParam(), "cst"};
};

TEST_P(DeviceCstLm, LogitsAreThoseOfTheFixture) {
  const std::string key = golden_.Expects("logprobs.0") ? "logprobs" : "logits";
  const std::pair<const char*, double> kBounds[] = {
      {"fp32", golden_.tolerance(key)}, {"bf16", 0.6}, {"fp16", 0.1}};
  for (const DevicePlace& place : PlacesOfDevices()) {
    for (const auto& [dtype, bound] : kBounds) {
      SCOPED_TRACE(place.name + ", " + dtype);
      const std::unique_ptr<Model> model = LoadOrFail(place.open(), golden_, dtype);
      ASSERT_NE(model, nullptr);
      for (int item = 0; item < golden_.items(); ++item) {
        const Answer answer = Generate(*model, Scored(item));
        EXPECT_LE(LargestDifference(answer.tensors[0].floats(),
                                    golden_.Expected(key + "." + std::to_string(item))),
                  bound)
            << item;
      }
    }
  }
}

TEST_P(DeviceCstLm, AnswersAreTheHosts) {
  const std::unique_ptr<Model> host = LoadOrFail(nullptr, golden_);
  const std::unique_ptr<Model> device = LoadOrFail(Device::OnHost(HostTwin()), golden_);
  ASSERT_TRUE(host != nullptr && device != nullptr);
  ASSERT_TRUE(device->WarmUp().ok());
  EXPECT_EQ(device->info().device, "host");
  EXPECT_GT(device->info().memory_bytes, 0);
  for (const uint32_t seed : {1, 2}) {
    std::vector<int32_t> ids = Ids(0);
    ids.resize(std::min<size_t>(ids.size(), 12 + seed));
    const Request request = SampledRequest(ids, seed, 2, 16);
    ExpectPieces(Generate(*device, request).sequences, Generate(*host, request).sequences, 1e-4);
  }
  EXPECT_EQ(device->cache().used, 0);
}

TEST_P(DeviceCstLm, ForksAndCompanyChangeNoBit) {
  const std::unique_ptr<Model> model = LoadOrFail(Device::OnHost(HostTwin()), golden_, "bf16");
  ASSERT_NE(model, nullptr);
  ExpectCompanyChangesNoBit(*model, 3, 2, 0, [&](uint32_t i, int samples) {
    std::vector<int32_t> ids = Ids(0);
    ids.resize(std::min<size_t>(ids.size(), 7 + 3 * i));
    return SampledRequest(ids, i, samples, 18);
  });
}

INSTANTIATE_TEST_SUITE_P(Cases, DeviceCstLm,
                         ::testing::Values("ar_L4_alpha3", "ar_L8_alpha1_post", "ar_adaptive",
                                           "ar_alpha2_zero_tiled", "ar_parallel", "ar_pool_max"),
                         [](const auto& info) { return info.param; });

TEST(DeviceCstLmLoad, WhatDoesNotFitIsRefusedWithNeedAndLimit) {
  const GoldenCase golden("ar_L4_alpha3", "cst");
  const kernels::cuda::PluginApi tight = HostTwinWith(uint64_t{1} << 20);
  const absl::Status refused = LoadAt(Device::OnHost(tight), golden, "fp32").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  for (const std::string part :
       {"on host: needs ", "weights", "workspace", "a cache of 16777216 bytes", "are free"}) {
    EXPECT_NE(std::string(refused.message()).find(part), std::string::npos) << refused;
  }
}

}  // namespace
}  // namespace longview::models
