// The autoregressive Composite Slice Transformer on a device: against its fixtures and the host, in
// any cut and any batch; on a device that is the host, and on CUDA's first device where there is
// one.
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

using Placed = PlacedGenerator<MakeCstLm>;

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
      const std::unique_ptr<Model> model =
          Placed::LoadOrFail(place.open(), golden_.directory(), dtype);
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
  std::vector<Request> requests;
  for (const uint32_t seed : {1, 2}) {
    std::vector<int32_t> ids = Ids(0);
    ids.resize(std::min<size_t>(ids.size(), 12 + seed));
    requests.push_back(SampledRequest(ids, seed, 2, 16));
  }
  Placed::ExpectAnswersOfTheHost(golden_.directory(), requests);
}

TEST_P(DeviceCstLm, ForksAndBatchMatesChangeNoBit) {
  const std::unique_ptr<Model> model = Placed::OnEmulator(golden_.directory(), "bf16");
  ASSERT_NE(model, nullptr);
  ExpectBatchInvariance(*model, 3, 2, 0, [&](uint32_t i, int samples) {
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
  Placed::ExpectRefusalWithNeedAndLimit(GoldenCase("ar_L4_alpha3", "cst").directory());
}

TEST(DeviceCstLmLoad, AnOddWidthIsServedOnTheCpu) {
  EditedModel edited{GoldenCase("ar_L4_alpha3", "cst")};
  edited.Cut(32, 31);
  edited.config["hidden_size"] = 31;
  edited.config["num_attention_heads"] = 1;
  Placed::ExpectTheCpu(edited.Write(), "width 31 must be even to run");
}

}  // namespace
}  // namespace longview::models
