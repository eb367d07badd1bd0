// The autoregressive Longformer: against its definition, step by step against the whole, in any
// cut and any batch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/models/generation/batch_invariance.h"
#include "tests/models/longformer_lm/causal_model.h"
#include "tests/models/longformer_lm/naive_longformer.h"

namespace longview::models {
namespace {

std::unique_ptr<Model> LoadOrFail(const CausalModel& files, const std::string& dtype = "fp32") {
  absl::StatusOr<std::unique_ptr<Model>> model =
      LoadModel(files.Write(), {.dtype = dtype, .cache_bytes = 64 << 20});
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : nullptr;
}

class LongformerLm : public ::testing::TestWithParam<size_t> {
 protected:
  const Pattern pattern_ = Patterns()[GetParam()];
};

TEST_P(LongformerLm, LogitsAreThoseOfTheDefinition) {
  const CausalModel files(pattern_.dilation, pattern_.windows);
  const std::unique_ptr<Model> model = LoadOrFail(files);
  ASSERT_NE(model, nullptr);
  for (const size_t tokens : {1, 5, 64, 150}) {
    const std::vector<int32_t> ids = RandomIds(tokens, static_cast<uint32_t>(tokens));
    const Answer answer = Generate(*model, Scored(ids));
    EXPECT_LE(LargestDifference(answer.tensors[0].floats(), NaiveLogits(files, ids)), 1e-4)
        << tokens;
  }
}

TEST_P(LongformerLm, StepByStepIsTheWhole) {
  const CausalModel files(pattern_.dilation, pattern_.windows);
  const std::unique_ptr<Model> model = LoadOrFail(files);
  ASSERT_NE(model, nullptr);
  for (const size_t prompt : {1, 70}) {
    std::vector<int32_t> ids = RandomIds(prompt, 9);
    GenerationOptions options = NewTokens(120);
    options.temperature = 1.0;
    options.seed = 5;
    options.logprobs = 0;
    const Piece piece = Generate(*model, IdsRequest(ids, options)).sequences[0];
    ASSERT_EQ(piece.token_ids.size(), 120u);
    ids.insert(ids.end(), piece.token_ids.begin(), piece.token_ids.end());
    GenerationOptions scoring = NewTokens(0);
    scoring.echo = true;
    scoring.logprobs = 0;
    const Answer whole = Generate(*model, IdsRequest(ids, scoring));
    for (size_t i = 0; i < piece.token_ids.size(); ++i) {
      EXPECT_NEAR(piece.logprobs[i].logprob, whole.prompt->logprobs[prompt + i].logprob, 1e-4) << i;
    }
  }
}

TEST_P(LongformerLm, CutsOfAPromptChangeNoBit) {
  const CausalModel files(pattern_.dilation, pattern_.windows);
  for (const char* dtype : {"fp32", "bf16"}) {
    const std::unique_ptr<Model> model = LoadOrFail(files, dtype);
    ASSERT_NE(model, nullptr);
    const std::vector<int32_t> ids = RandomIds(300, 2);
    const Answer whole = Generate(*model, Scored(ids));
    const Answer cut = Generate(*model, Scored(ids), 64);
    EXPECT_EQ(whole.tensors[0].data, cut.tensors[0].data) << dtype;
  }
}

TEST_P(LongformerLm, ForksAndBatchMatesChangeNoBit) {
  const CausalModel files(pattern_.dilation, pattern_.windows);
  const std::unique_ptr<Model> model = LoadOrFail(files);
  ASSERT_NE(model, nullptr);
  ExpectBatchInvariance(*model, 4, 3, 64, [](uint32_t seed, int samples) {
    return SampledRequest(RandomIds(60 + seed, seed), seed, samples, 90);
  });
}

INSTANTIATE_TEST_SUITE_P(Patterns, LongformerLm, ::testing::Range<size_t>(0, 4),
                         [](const auto& info) { return Patterns()[info.param].name; });

// Memory is the widest window's, whatever was read.
TEST(LongformerLmState, DoesNotGrowBeyondTheWindow) {
  const CausalModel files(nullptr, {8, 4});
  const std::unique_ptr<Model> model = LoadOrFail(files);
  ASSERT_NE(model, nullptr);
  const auto bytes = [&](int tokens) {
    const auto item = model->Prepare(IdsRequest(RandomIds(static_cast<size_t>(tokens), 1)));
    EXPECT_TRUE(item.ok()) << item.status();
    return (*item)->cost().state_bytes;
  };
  EXPECT_EQ(bytes(200), bytes(300));
  EXPECT_LT(bytes(10), bytes(200));
}

TEST(LongformerLmState, TextsEndWithThePositionTable) {
  const CausalModel files;
  const std::unique_ptr<Model> model = LoadOrFail(files);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->info().task, Task::kTextGeneration);
  EXPECT_EQ(model->info().max_tokens, kPositions - 2);
  EXPECT_EQ(Refusal(*model, IdsRequest(RandomIds(kPositions - 3, 1), NewTokens(1))), "");
  EXPECT_NE(Refusal(*model, IdsRequest(RandomIds(kPositions - 2, 1), NewTokens(1))), "");
}

}  // namespace
}  // namespace longview::models
