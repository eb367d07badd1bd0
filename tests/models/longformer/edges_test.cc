// Properties that hold whatever the weights: the edge list of the Longformer specification, and
// checkpoints that do not fit their configuration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tests/models/encoder/edge_frame.h"

namespace longview::models {
namespace {

TokenInput Ids(int count, uint32_t seed) { return RandomIds(count, seed, 4, 304); }

void CopyLocalToGlobal(EditedModel& model) {
  for (auto& [name, tensor] : model.tensors) {
    const size_t at = name.find("_global.");
    if (at == std::string::npos) continue;
    std::string local = name;
    local.erase(at, std::string("_global").size());
    tensor = model.tensors.at(local);
  }
}

TokenInput WithGlobals(TokenInput tokens, const std::vector<int>& positions) {
  tokens.global_mask.emplace(tokens.ids.size(), uint8_t{0});
  for (const int position : positions) (*tokens.global_mask)[position] = 1;
  return tokens;
}

// With equal projections and windows over everything, who is global cannot matter: local rows,
// folded global rows (few) and projected global rows (many) must agree.
TEST(LongformerEdgesTest, EqualProjectionsAndFullWindowsMakeGlobalsInvisible) {
  EditedModel edited{GoldenCase("embeddings")};
  edited.config["attention_window"] = 1024;
  CopyLocalToGlobal(edited);
  const auto model = edited.Load();
  ASSERT_TRUE(model.ok()) << model.status();
  const TokenInput tokens = Ids(200, 1);
  const std::vector<float> local = LastHiddenState(**model, tokens);
  std::vector<int> all(200);
  for (int i = 0; i < 200; ++i) all[i] = i;
  for (const std::vector<int>& globals :
       {std::vector<int>{0}, {199}, {7, 8}, {0, 50, 51, 100, 199}, all}) {
    EXPECT_LE(Difference(LastHiddenState(**model, WithGlobals(tokens, globals)), local), 1e-5)
        << globals.size() << " globals";
  }
}

TEST(LongformerEdgesTest, WithoutGlobalsTheirProjectionsAreNeverRead) {
  EditedModel edited{GoldenCase("embeddings")};
  const std::vector<float> want = LastHiddenState(**edited.Load(), Ids(60, 2));
  for (auto& [name, tensor] : edited.tensors) {
    if (name.find("_global.") == std::string::npos) continue;
    // A sum with such values is infinite, and NaN once it is multiplied by 0.
    for (float& value : tensor.values) value = std::numeric_limits<float>::max();
  }
  EXPECT_EQ(LastHiddenState(**edited.Load(), Ids(60, 2)), want);
}

TEST(LongformerEdgesTest, WhenAllAreGlobalLocalProjectionsHaveNoInfluence) {
  EditedModel edited{GoldenCase("embeddings")};
  std::vector<int> all(40);
  for (int i = 0; i < 40; ++i) all[i] = i;
  const TokenInput tokens = WithGlobals(Ids(40, 3), all);
  const std::vector<float> want = LastHiddenState(**edited.Load(), tokens);
  for (auto& [name, tensor] : edited.tensors) {
    for (const char* part : {"self.query.", "self.key.", "self.value."}) {
      if (name.find(part) == std::string::npos) continue;
      for (float& value : tensor.values) value *= 3;
    }
  }
  EXPECT_EQ(LastHiddenState(**edited.Load(), tokens), want);
}

// A row is reached by what lies within w tokens per layer, and by nothing further away.
TEST(LongformerEdgesTest, ATokensInfluenceReachesOneWindowPerLayer) {
  const GoldenCase golden("embeddings");
  const auto model = golden.Load("fp32");
  const int reach = 8 / 2 + 16 / 2 + 4 / 2, width = model->info().embedding_width, changed = 100;
  TokenInput tokens = Ids(220, 4);
  const std::vector<float> before = LastHiddenState(*model, tokens);
  tokens.ids[changed] = tokens.ids[changed] == 9 ? 10 : 9;
  const std::vector<float> after = LastHiddenState(*model, tokens);
  for (int t = 0; t < 220; ++t) {
    const bool same = std::equal(before.begin() + t * width, before.begin() + (t + 1) * width,
                                 after.begin() + t * width);
    EXPECT_EQ(same, std::abs(t - changed) > reach) << "token " << t;
  }
}

TEST(LongformerEdgesTest, EveryLengthAroundTheWindow) {
  EditedModel edited{GoldenCase("embeddings")};
  const auto narrow = edited.Load();
  edited.config["attention_window"] = 2048;
  EditedModel wide_edit{GoldenCase("embeddings")};
  wide_edit.config = edited.config;
  const auto wide = wide_edit.Load();
  for (const int tokens : {1, 2, 3}) {
    // The smallest window is 2 on each side.
    EXPECT_LE(Difference(LastHiddenState(**narrow, Ids(tokens, 5)),
                         LastHiddenState(**wide, Ids(tokens, 5))),
              1e-6)
        << tokens;
  }
  for (const int tokens : {4, 5, 7, 8, 9, 15, 16, 17, 33, 63, 64, 65, 300}) {
    ExpectFinite(LastHiddenState(**narrow, Ids(tokens, 6)), std::to_string(tokens));
  }
}

// HuggingFace's classes warn of such tensors.
TEST(LongformerEdgesTest, SurplusTensorsAreNoted) {
  const auto expect_noted = [](const EditedModel& edited, const std::string& part) {
    const auto model = edited.Load();
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_THAT((*model)->info().notes, ::testing::Contains(::testing::HasSubstr(part)));
  };
  EditedModel adapter{GoldenCase("classification")};
  adapter.tensors["adapter.weight"] = {{1}, {1}};
  expect_noted(adapter, "adapter.weight");
  EditedModel shallow{GoldenCase("classification")};
  shallow.config["num_hidden_layers"] = 2;
  shallow.config["attention_window"] = 8;
  expect_noted(shallow, "encoder.layer.2");
}

TEST(LongformerEdgesTest, CheckpointsThatDoNotFitAreRefusedByName) {
  const std::string layer = "longformer.encoder.layer.1.";
  const Broken cases[] = {
      {"missing head", [](EditedModel& m) { m.tensors.erase("classifier.dense.weight"); },
       "classifier.dense.weight"},
      {"missing layer tensor",
       [&](EditedModel& m) { m.tensors.erase(layer + "attention.self.key_global.bias"); },
       "encoder.layer.1.attention.self.key_global.bias"},
      {"missing embeddings",
       [](EditedModel& m) { m.tensors.erase("longformer.embeddings.position_embeddings.weight"); },
       "position_embeddings"},
      {"misshapen",
       [&](EditedModel& m) {
         m.tensors[layer + "intermediate.dense.weight"].shape = {32, 64};
       },
       "intermediate.dense.weight"},
      {"one layer more than the file",
       [](EditedModel& m) {
         m.config["num_hidden_layers"] = 4;
         m.config["attention_window"] = 8;
       },
       "encoder.layer.3"},
      {"another number of labels",
       [](EditedModel& m) {
         m.config.erase("id2label");
         m.config["num_labels"] = 7;
       },
       "classifier.out_proj"},
  };
  for (const Broken& broken : cases) {
    ExpectRefusedByName(GoldenCase("classification"), broken);
  }
}

TEST(LongformerEdgesTest, OldSpellingsAndOtherPrefixesAreRead) {
  const GoldenCase golden("classification");
  const Request request = TokenRequest(Task::kTextClassification, golden.Tokens(4), {"logits"});
  const Answer want = RunAlone(*golden.Load("fp32"), request);
  EditedModel edited(golden);
  std::map<std::string, EditedTensor> renamed;
  for (auto& [name, tensor] : edited.tensors) {
    std::string other = name;
    if (other.starts_with("longformer.")) other.replace(0, 10, "roberta");
    for (const auto& [from, to] :
         {std::pair<std::string, std::string>{"LayerNorm.weight", "LayerNorm.gamma"},
          {"LayerNorm.bias", "LayerNorm.beta"}}) {
      if (other.ends_with(from)) other.replace(other.size() - from.size(), from.size(), to);
    }
    renamed[other] = std::move(tensor);
  }
  renamed["roberta.pooler.dense.weight"] = {{1}, {0}};
  edited.tensors = std::move(renamed);
  const auto model = edited.Load();
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(RunAlone(**model, request).tensors[0].data, want.tensors[0].data);
}

TEST(LongformerEdgesTest, InspectionAgreesWithLoading) {
  const GoldenCase golden("token_classification");
  ExpectExplained(golden, "token-classification");
  const auto model = golden.Load("fp32");
  EXPECT_EQ(model->info().labels.size(), 7u);
  EXPECT_EQ(model->info().max_tokens, 200);
  EXPECT_GT(model->info().parameters, 0);
}

TEST(LongformerEdgesTest, DtypesByNameAndByDirectory) {
  EditedModel edited{GoldenCase("classification")};
  EXPECT_EQ((*edited.Load("auto"))->info().dtype, "fp32");
  EXPECT_FALSE(edited.Load("fp16").ok());
  EXPECT_FALSE(edited.Load("int4").ok());
  const auto bf16 = edited.Load("bf16");
  ASSERT_TRUE(bf16.ok());
  EXPECT_TRUE((*bf16)->info().dtype == "bf16" || !(*bf16)->info().notes.empty());
}

}  // namespace
}  // namespace longview::models
