// The autoregressive Longformer on a device: against its definition and the host, in any cut and
// any batch; on a device that is the host, and on CUDA's first device where there is one.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/models/generation/placed_generator.h"
#include "tests/models/longformer_lm/causal_model.h"
#include "tests/models/longformer_lm/naive_longformer.h"

namespace longview::models {
namespace {

using Placed = PlacedGenerator<MakeLongformerLm>;

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
      const std::unique_ptr<Model> model = Placed::LoadOrFail(place.open(), files_.Write(), dtype);
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
    const std::unique_ptr<Model> model = Placed::OnEmulator(files_.Write(), dtype);
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
  const std::vector<Request> requests = {Sampled(1, 2), Sampled(2, 2)};
  Placed::ExpectAnswersOfTheHost(files_.Write(), requests);
}

TEST_P(DeviceLongformerLm, ForksAndBatchMatesChangeNoBit) {
  const std::unique_ptr<Model> model = Placed::OnEmulator(files_.Write(), "bf16");
  ASSERT_NE(model, nullptr);
  ExpectBatchInvariance(*model, 3, 2, 64, Sampled);
}

INSTANTIATE_TEST_SUITE_P(Patterns, DeviceLongformerLm, ::testing::Range<size_t>(0, 4),
                         [](const auto& info) { return Patterns()[info.param].name; });

TEST(DeviceLongformerLmLoad, WhatDoesNotFitIsRefusedWithNeedAndLimit) {
  Placed::ExpectRefusalWithNeedAndLimit(CausalModel().Write());
}

TEST(DeviceLongformerLmLoad, AnOddWidthIsServedOnTheCpu) {
  CausalModel edited;
  edited.Cut(32, 31);
  edited.config["hidden_size"] = 31;
  edited.config["num_attention_heads"] = 1;
  Placed::ExpectTheCpu(edited.Write(), "width 31 must be even to run");
}

}  // namespace
}  // namespace longview::models
