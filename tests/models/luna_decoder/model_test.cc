// Luna language models from their directories to generated tokens: goldens through Prepare, Start
// and steps, text by dict.txt, documents, directories that do not fit.
#include <gtest/gtest.h>

#include <functional>

#include "tests/models/generation/generator_driver.h"
#include "tests/models/golden/edited_model.h"
#include "tests/models/golden/golden_case.h"

namespace longview::models {
namespace {

GoldenCase Case(const std::string& name) { return GoldenCase(name, "luna"); }

std::unique_ptr<Model> Load(const GoldenCase& golden) {
  absl::StatusOr<std::unique_ptr<Model>> model =
      LoadModel(golden.directory(), {.dtype = "fp32", .device = "cpu", .cache_bytes = 64 << 20});
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : nullptr;
}

std::vector<int32_t> Ids(const GoldenCase& golden, int item) {
  const std::vector<int64_t> wide = golden.Integers("input_ids." + std::to_string(item));
  return {wide.begin(), wide.end()};
}

class LunaLm : public ::testing::TestWithParam<const char*> {};

TEST_P(LunaLm, GreedyContinuationsWholeAndInPieces) {
  const GoldenCase golden = Case(GetParam());
  const auto model = Load(golden);
  for (int i = 0; i < golden.items(); ++i) {
    const std::vector<int64_t> wide = golden.ExpectedIntegers("greedy.tokens." + std::to_string(i));
    const std::vector<int32_t> want(wide.begin(), wide.end());
    GenerationOptions options = NewTokens(static_cast<int>(want.size()));
    options.ignore_eos = true;
    for (const int prefill : {0, 5}) {
      const Answer answer = Generate(*model, IdsRequest(Ids(golden, i), options), prefill);
      ASSERT_EQ(answer.sequences.size(), 1u);
      EXPECT_EQ(answer.sequences[0].token_ids, want) << "item " << i << " prefill " << prefill;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, LunaLm, ::testing::Values("causal_tied", "causal_untied_prenorm"));

TEST(LunaLmText, SymbolsBetweenSpaces) {
  const GoldenCase golden = Case("causal_tied");
  const auto model = Load(golden);
  GenerationOptions options = NewTokens(5);
  options.ignore_eos = true;
  // bos, then symbols of dict.txt from id 4 on; what is not in it is <unk>.
  const Answer text = Generate(*model, TextRequest("w0 w3  w39 nowhere", options));
  const Answer ids = Generate(*model, IdsRequest({2, 4, 7, 43, 3}, options));
  EXPECT_EQ(text.sequences[0].token_ids, ids.sequences[0].token_ids);
  std::string want;
  for (const int32_t id : ids.sequences[0].token_ids) {
    if (id >= 4) want += "w" + std::to_string(id - 4) + " ";
  }
  EXPECT_EQ(text.sequences[0].text, want);
}

TEST(LunaLmText, BeamsAndSamplesShareTheirPrompt) {
  const GoldenCase golden = Case("causal_untied_prenorm");
  const auto model = Load(golden);
  GenerationOptions beams = NewTokens(8);
  beams.num_beams = 4;
  beams.num_return_sequences = 3;
  EXPECT_EQ(Generate(*model, IdsRequest({2, 9, 11}, beams)).sequences.size(), 3u);
  GenerationOptions samples = NewTokens(8);
  samples.temperature = 1;
  samples.seed = 5;
  samples.num_return_sequences = 4;
  const Answer first = Generate(*model, IdsRequest({2, 9, 11}, samples));
  const Answer again = Generate(*model, IdsRequest({2, 9, 11}, samples), 1);
  ASSERT_EQ(first.sequences.size(), 4u);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(first.sequences[i].token_ids, again.sequences[i].token_ids);
  }
  EXPECT_EQ(model->cache().used, 0);
}

TEST(LunaLmText, WhatDoesNotFitIsRefusedByName) {
  const GoldenCase golden = Case("causal_tied");
  const auto model = Load(golden);
  EXPECT_NE(Refusal(*model, IdsRequest(std::vector<int32_t>(65, 5), NewTokens(1))).find("64"),
            std::string::npos);
  EXPECT_NE(Refusal(*model, IdsRequest({5, 44}, NewTokens(1))).find("44"), std::string::npos);
  EXPECT_EQ(Refusal(*model, IdsRequest({5, 43}, NewTokens(1))), "");
}

struct Broken {
  const char* what;
  std::function<void(EditedModel&)> edit;
  const char* part;  // Part of the message.
};

TEST(LunaLmDirectory, CheckpointsThatDoNotFitAreRefusedByName) {
  const Broken cases[] = {
      {"missing", [](EditedModel& m) { m.tensors.erase("decoder.layers.1.fc1.bias"); },
       "layers.1.fc1.bias"},
      {"untied", [](EditedModel& m) { m.config["tie_kv"] = false; }, "k_proj"},
      {"learned", [](EditedModel& m) { m.config["position_type"] = "learned"; },
       "embed_positions.weight"},
      {"pre-norm", [](EditedModel& m) { m.config["norm_position"] = "pre"; }, "layer_norm"},
      {"rows", [](EditedModel& m) { m.config["proj_len"] = 15; }, "projected_embeddings"},
      {"a layer less", [](EditedModel& m) { m.config["num_layers"] = 1; }, "layers.1"},
      {"another output matrix",
       [](EditedModel& m) { m.tensors["decoder.output_projection.weight"].values[3] += 1; },
       "output_projection"},
  };
  for (const Broken& broken : cases) {
    EditedModel edited{Case("causal_tied")};
    broken.edit(edited);
    const auto model = edited.Load();
    ASSERT_FALSE(model.ok()) << broken.what;
    EXPECT_NE(model.status().message().find(broken.part), std::string::npos) << model.status();
    EXPECT_FALSE(InspectDirectory(edited.directory()).servable) << broken.what;
  }
  const Inspection good = InspectDirectory(Case("causal_tied").directory());
  EXPECT_TRUE(good.servable) << good.error;
  EXPECT_NE(good.report.find("text-generation"), std::string::npos);
}

}  // namespace
}  // namespace longview::models
