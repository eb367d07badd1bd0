// The language model through the server's interface: a directory is described and loaded, ids go in
// and come out, state is given back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "models/ops/deliver.h"
#include "models/status_macros.h"
#include "tests/models/cst/cst_case.h"
#include "tests/models/golden/edited_model.h"

namespace longview::models {
namespace {

constexpr double kCacheBytes = 32 << 20;

GoldenCase Case(const std::string& name) { return GoldenCase(name, "cst"); }

std::unique_ptr<Model> Load(const std::string& name) {
  auto model = LoadModel(Case(name).directory(), {.dtype = "fp32", .cache_bytes = kCacheBytes});
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

Request Continue(std::vector<int32_t> ids, int new_tokens) {
  Request request;
  request.task = Task::kTextGeneration;
  request.tokens.emplace().ids = std::move(ids);
  request.generation.emplace();
  request.generation->max_new_tokens = new_tokens;
  request.generation->ignore_eos = true;
  return request;
}

// Prepares one request and runs it to its end.
absl::StatusOr<Answer> Generate(Model& model, const Request& request) {
  ASSIGN_OR_RETURN(const auto item, model.Prepare(request));
  ASSIGN_OR_RETURN(const auto generation, model.Start(*item));
  while (!generation->done()) {
    const StepGrant grant{generation.get(), generation->need().prefill};
    const auto step = model.BeginStep({&grant, 1});
    while (step->Advance()) {
    }
  }
  return generation->Take();
}

TEST(CstLmModel, ContinuesIdsAsTheFixtureDoes) {
  const GoldenCase golden = Case("ar_L4_alpha3");
  const auto model = Load("ar_L4_alpha3");
  ASSERT_TRUE(model->WarmUp().ok());
  EXPECT_EQ(model->info().family, "cst");
  EXPECT_EQ(model->info().max_tokens, 40);
  EXPECT_EQ(model->info().prefill_alignment, 64);
  EXPECT_FALSE(model->info().has_tokenizer);
  for (int i = 0; i < golden.items(); ++i) {
    const std::vector<double> want = golden.Expected("greedy.tokens." + std::to_string(i));
    const auto answer =
        Generate(*model, Continue(golden.Tokens(i).ids, static_cast<int>(want.size())));
    ASSERT_TRUE(answer.ok()) << answer.status();
    ASSERT_EQ(answer->sequences.size(), 1u);
    EXPECT_TRUE(std::ranges::equal(answer->sequences[0].token_ids, want)) << i;
  }
  EXPECT_EQ(model->cache().used, 0);
}

TEST(CstLmModel, RefusesWhatItsPositionsDoNotReach) {
  const auto model = Load("ar_L4_alpha3");
  const auto refused = [&](const Request& request, const std::string& part) {
    const auto item = model->Prepare(request);
    ASSERT_FALSE(item.ok()) << part;
    EXPECT_NE(item.status().message().find(part), std::string::npos) << item.status();
  };
  refused(Continue(std::vector<int32_t>(41, 1), 1), "40");
  refused(Continue(std::vector<int32_t>(30, 1), 11), "40");
  refused(Continue({1, 40}, 1), "40");
  refused(Continue({}, 1), "");
  EXPECT_TRUE(model->Prepare(Continue(std::vector<int32_t>(39, 1), 1)).ok());
  EXPECT_FALSE(model->EstimateTokens(41).ok());
}

TEST(CstLmModel, IsInspectedWithoutLoading) {
  const Inspection inspection = InspectDirectory(Case("ar_adaptive").directory());
  EXPECT_TRUE(inspection.servable) << inspection.report;
  EXPECT_NE(inspection.report.find("text-generation"), std::string::npos) << inspection.report;
}

struct Broken {
  const char* golden;
  std::function<void(EditedModel&)> edit;
  const char* part;  // Part of the message.
};

TEST(CstLmModel, CheckpointsThatDoNotFitAreRefusedByName) {
  const Broken cases[] = {
      {"ar_L4_alpha3", [](EditedModel& m) { m.config["lm_head_bias"] = true; }, "lm_head.bias"},
      {"ar_L4_alpha3", [](EditedModel& m) { m.config["tie_word_embeddings"] = false; },
       "lm_head.weight"},
      {"ar_adaptive", [](EditedModel& m) { m.config["lm_head"] = "tied"; }, "lm_head."},
      {"ar_adaptive",
       [](EditedModel& m) {
         m.config["adaptive_cutoffs"] = {10, 20};
       },
       "lm_head.cluster_weight"},
      {"ar_L4_alpha3", [](EditedModel& m) { m.config["extension_ratio"] = 1; }, "local_embeddings"},
  };
  for (const Broken& broken : cases) {
    EditedModel edited{Case(broken.golden)};
    broken.edit(edited);
    const auto model = edited.Load();
    ASSERT_FALSE(model.ok()) << broken.part;
    EXPECT_NE(model.status().message().find(broken.part), std::string::npos) << model.status();
  }
}

// Keys and values of a slice per slice, the window's blocks, the open slice: nothing per token.
TEST(CstLmModel, StateGrowsByASliceNotByAToken) {
  CstCase model(Case("ar_L4_alpha3").directory(), "fp32");
  const DecoderCosts& costs = model.decoder().costs();
  // 64 slots of keys and values, 4 heads padded to 16 channels, 2 layers.
  const double page = 64.0 * 2 * 4 * 16 * 4 * 2;
  const double window = costs.StateBytes(0, 4 * 64, 1);
  EXPECT_EQ(costs.StateBytes(0, 8 * 64, 1), window + page);
  EXPECT_EQ(costs.StateBytes(0, 12 * 64, 1), window + 2 * page);
}

TEST(CstLmModel, AnAdaptiveSoftmaxSumsToOne) {
  std::vector<float> scores;
  for (int i = 0; i < 43; ++i) scores.push_back(3.0f * std::sin(1.7f * static_cast<float>(i)));
  scores[12] = 80.0f;
  std::vector<float> out(40);
  AdaptiveLogProbabilities(scores, std::vector<int>{10, 20, 30}, out);
  double sum = 0;
  for (const float value : out) sum += std::exp(double{value});
  EXPECT_NEAR(sum, 1.0, 1e-6);
  // One word in every tail: its probability is the tail's.
  std::vector<float> few(4);
  AdaptiveLogProbabilities(std::vector<float>{1, 5, 6, 7, 2, 3, 4}, std::vector<int>{1, 2, 3}, few);
  const double all = std::exp(1.0) + std::exp(2.0) + std::exp(3.0) + std::exp(4.0);
  for (int w = 0; w < 4; ++w) EXPECT_NEAR(std::exp(few[w]), std::exp(w + 1.0) / all, 1e-6) << w;
}

}  // namespace
}  // namespace longview::models
