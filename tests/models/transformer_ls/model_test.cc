// The family through the server's interface: a directory is described and loaded, text goes in and
// comes out, state is given back.
#include "models/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "models/status_macros.h"
#include "tests/models/golden/golden_case.h"

namespace longview::models {
namespace {

constexpr double kCacheBytes = 32 << 20;

// Prepares one request and runs it to its end, `prefill` tokens at a time.
absl::StatusOr<Answer> Generate(Model& model, const Request& request, int prefill) {
  ASSIGN_OR_RETURN(const auto item, model.Prepare(request));
  ASSIGN_OR_RETURN(const auto generation, model.Start(*item));
  while (!generation->done()) {
    const StepGrant grant{generation.get(), std::min(prefill, generation->need().prefill)};
    const auto step = model.BeginStep({&grant, 1});
    while (step->Advance()) {
    }
  }
  return generation->Take();
}

std::unique_ptr<Model> Load(const GoldenCase& golden) {
  auto model = LoadModel(golden.directory(), {.dtype = "fp32", .cache_bytes = kCacheBytes});
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

TEST(LsModel, AnswersTextAsTheFixtureContinuesIt) {
  const GoldenCase golden("paper_dh16_r1_l4_w8", "transformer_ls_lm");
  const auto model = Load(golden);
  ASSERT_TRUE(model->WarmUp().ok());
  EXPECT_EQ(model->info().family, "transformer_ls");
  EXPECT_EQ(model->info().prefill_alignment, 64);
  EXPECT_TRUE(model->info().has_tokenizer);

  Request request;
  request.task = Task::kTextGeneration;
  request.tokens.emplace();
  for (const int64_t id : golden.Integers("prompt.3")) {
    request.tokens->ids.push_back(static_cast<int32_t>(id));
  }
  request.generation.emplace();
  request.generation->max_new_tokens = 64;
  request.generation->ignore_eos = true;
  const auto answer = Generate(*model, request, 64);
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_EQ(answer->sequences.size(), 1u);
  const std::vector<double> want = golden.Expected("greedy.3");
  ASSERT_EQ(answer->sequences[0].token_ids.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(answer->sequences[0].token_ids[i], want[i]) << i;
  }
  EXPECT_EQ(model->cache().used, 0);
  EXPECT_LE(model->cache().evictable, kCacheBytes);
}

TEST(LsModel, APromptThatComesAgainIsFound) {
  const GoldenCase golden("paper_dh32_r2_l16_w64", "transformer_ls_lm");
  const auto model = Load(golden);
  Request request;
  request.task = Task::kTextGeneration;
  request.text = std::string(150, 'a') + "b";
  request.generation.emplace();
  request.generation->max_new_tokens = 5;
  request.generation->ignore_eos = true;
  const auto first = Generate(*model, request, 64);
  const auto second = Generate(*model, request, 64);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_EQ(first->usage.cached_tokens, 0);
  EXPECT_EQ(second->usage.cached_tokens, 128);
  EXPECT_EQ(first->sequences[0].token_ids, second->sequences[0].token_ids);
  EXPECT_GT(model->cache().evictable, 0);
}

TEST(LsModel, CostsAreTheClosedForm) {
  const GoldenCase golden("paper_dh32_r2_l16_w64", "transformer_ls_lm");
  const auto model = Load(golden);
  const auto small = model->EstimateTokens(64), large = model->EstimateTokens(8192);
  ASSERT_TRUE(small.ok() && large.ok());
  EXPECT_GT(small->state_bytes, 0);
  EXPECT_GT(large->state_bytes, small->state_bytes);
  EXPECT_GT(large->seconds, small->seconds);
  // 512 segments of 2 rows, keys and values of 64 numbers, 2 layers, and the window's blocks.
  EXPECT_GE(large->state_bytes, 512 * 2 * 2 * 64 * 2 * 4);
  EXPECT_LE(large->state_bytes, 512 * 2 * 2 * 64 * 2 * 4 * 1.35);
}

TEST(LsModel, CostsCountTablesOfPositions) {
  const GoldenCase golden("paper_dh32_r2_l16_w64", "transformer_ls_lm");
  const auto model = Load(golden);
  const auto fits = model->EstimateTokens(4000), more = model->EstimateTokens(8000);
  ASSERT_TRUE(fits.ok() && more.ok());
  // Ids 512 to 1023, two a segment: 2 layers of 64 numbers, as rows and packed.
  EXPECT_EQ(more->workspace_bytes - fits->workspace_bytes, 2 * 2 * 512 * 64 * 4);

  const GoldenCase forgets("blocks_B32_M32_w32_l16", "transformer_ls_lm");
  const auto bounded = Load(forgets);
  const auto shorter = bounded->EstimateTokens(4000), longer = bounded->EstimateTokens(8000);
  ASSERT_TRUE(shorter.ok() && longer.ok());
  EXPECT_EQ(shorter->workspace_bytes, longer->workspace_bytes);
}

TEST(LsModel, IsInspectedWithoutLoading) {
  const GoldenCase golden("blocks_enwik8_dict", "transformer_ls_lm");
  const Inspection inspection = InspectDirectory(golden.directory());
  EXPECT_TRUE(inspection.servable) << inspection.report;
  EXPECT_NE(inspection.report.find("text-generation"), std::string::npos) << inspection.report;
  EXPECT_NE(inspection.report.find("as config.json and"), std::string::npos);
}

TEST(LsModel, BadRequestsAreRefused) {
  const GoldenCase golden("paper_fp16_file", "transformer_ls_lm");
  const auto model = Load(golden);
  Request request;
  request.task = Task::kTextGeneration;
  request.tokens.emplace().ids = {1, 256};
  EXPECT_FALSE(model->Prepare(request).ok());
  request.tokens->ids = {};
  EXPECT_FALSE(model->Prepare(request).ok());
  EXPECT_FALSE(model->EstimateTokens(1 << 18).ok());
}

}  // namespace
}  // namespace longview::models
