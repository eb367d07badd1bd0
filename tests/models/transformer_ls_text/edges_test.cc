// Properties that hold whatever the weights: the edge list of the specification, requests that
// cannot be read, checkpoints that do not fit their configuration.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/models/encoder/edge_frame.h"

namespace longview::models {
namespace {

GoldenCase Case(const std::string& name) { return GoldenCase(name, "transformer_ls_text"); }

TokenInput Ids(int count, uint32_t seed, int vocab = 40) {
  return RandomIds(count, seed, 1, vocab);
}

TEST(LsTextEdgesTest, EveryLengthAroundTheWindowIsFinite) {
  for (const char* name : {"interior_mask", "all_layers_tied_w3", "first_token_w4_r2",
                           "mean_length_w2_r0", "one_layer_w4_r3"}) {
    const auto model = Case(name).Load("fp32");
    for (const int tokens : {1, 2, 3, 4, 5, 7, 8, 9, 12, 17, 33, 63, 64}) {
      ExpectFinite(Logits(*model, Ids(tokens, 1)), name);
    }
  }
}

TEST(LsTextEdgesTest, TrailingZerosChangeNoBit) {
  for (const char* name : {"interior_mask", "mean_length_w2_r0"}) {
    const auto model = Case(name).Load("fp32");
    TokenInput tokens = Ids(21, 2);
    const std::vector<float> want = Logits(*model, tokens);
    tokens.ids.resize(34);
    EXPECT_EQ(Logits(*model, tokens), want) << name;
    TokenInput masked = Ids(21, 2);
    masked.ids.resize(30, 7);
    masked.attention_mask.assign(30, 1);
    std::fill(masked.attention_mask.begin() + 21, masked.attention_mask.end(), uint8_t{0});
    EXPECT_EQ(Logits(*model, masked), want) << name;
    // Whoever wants a row per token gets the tail's too; the document stays the same.
    Request all = Classify(tokens);
    all.tensors = {"logits", "last_hidden_state"};
    const Answer answer = RunAlone(*model, all);
    EXPECT_LE(LargestDifference(answer.tensors[0].floats(), {want.begin(), want.end()}), 0.0);
    EXPECT_EQ(answer.tensors[1].shape[0], 34);
  }
}

// The content of masked places is nobody's business.
TEST(LsTextEdgesTest, MaskedTokensAreNotRead) {
  const auto model = Case("interior_mask").Load("fp32");
  TokenInput tokens = Ids(40, 3);
  tokens.attention_mask.assign(40, 1);
  for (const int t : {0, 8, 9, 10, 11, 12, 13, 14, 15, 33}) tokens.attention_mask[t] = 0;
  const std::vector<float> want = Logits(*model, tokens);
  TokenInput zeros = tokens;
  for (int t = 0; t < 40; ++t) {
    if (tokens.attention_mask[t] == 0) {
      tokens.ids[t] = 1 + t % 30;
      zeros.ids[t] = 0;
    }
  }
  EXPECT_EQ(Logits(*model, tokens), want);
  zeros.attention_mask.clear();
  EXPECT_EQ(Logits(*model, zeros), want);
}

void Permute(EditedTensor& tensor, int heads, int rank, const std::vector<int>& order) {
  const size_t width = tensor.values.size() / static_cast<size_t>(heads * rank);
  const std::vector<float> old = tensor.values;
  for (int head = 0; head < heads; ++head) {
    for (int j = 0; j < rank; ++j) {
      const auto from = static_cast<size_t>(head * rank + order[j]) * width;
      std::copy_n(old.begin() + static_cast<ptrdiff_t>(from), width,
                  tensor.values.begin() + static_cast<ptrdiff_t>((head * rank + j) * width));
    }
  }
}

TEST(LsTextEdgesTest, TheOrderOfLandmarksAndTheirBiasDoNotMatter) {
  const GoldenCase golden = Case("interior_mask");
  const std::vector<float> want = Logits(*golden.Load("fp32"), Ids(50, 4));
  EditedModel edited(golden);
  for (auto& [name, tensor] : edited.tensors) {
    if (name.find("dconv_fc.weight") != std::string::npos) {
      Permute(tensor, 4, 6, {3, 0, 5, 1, 2, 4});
    }
    if (name.find("dconv_fc.bias") != std::string::npos) {
      for (float& value : tensor.values) value += 2.5f;
    }
  }
  const auto model = edited.Load();
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_LE(Difference(Logits(**model, Ids(50, 4)), want), 1e-5);
}

TEST(LsTextEdgesTest, TheOrderOfDocumentsOfAPairMatters) {
  const auto model = Case("retrieval_pair_w8_r32").Load("fp32");
  Request pair = TokenRequest(Task::kTextPairClassification, Ids(50, 5, 257), {"logits"});
  pair.tokens_pair = Ids(70, 6, 257);
  ExpectOrderMatters(*model, pair);
}

TEST(LsTextEdgesTest, RequestsThatCannotBeRead) {
  const auto model = Case("interior_mask").Load("fp32");
  ExpectPlainIdsOnly(*model, 64, 40);
  ExpectRefused(*model, Classify({{0, 0, 0}, {}, {}, {}}), "every token is masked");
  Request text;
  text.text = "a text";
  ExpectRefused(*model, text, "no tokenizer");
  const auto mean = Case("mean_length_w2_r0").Load("fp32");
  Request cls = TokenRequest(Task::kEmbedding, Ids(5, 1), {"embedding"});
  cls.pooling = "cls";
  ExpectRefused(*mean, cls, "no class token");
  const auto pairs = Case("retrieval_pair_w8_r32").Load("fp32");
  ExpectRefused(*pairs, TokenRequest(Task::kTextPairClassification, Ids(5, 1), {"logits"}),
                "token_ids_pair");
}

TEST(LsTextEdgesTest, EachDocumentOfAPairHasTheWholeLimit) {
  const auto model = Case("retrieval_pair_w8_r32").Load("fp32");
  Request pair = TokenRequest(Task::kTextPairClassification, Ids(128, 5, 257), {"logits"});
  pair.tokens_pair = Ids(128, 6, 257);
  EXPECT_TRUE(model->Prepare(pair).ok());
  pair.tokens_pair = Ids(130, 6, 257);
  EXPECT_FALSE(model->Prepare(pair).ok());
  pair.truncate = true;
  const auto item = model->Prepare(pair);
  ASSERT_TRUE(item.ok()) << item.status();
  EXPECT_EQ((*item)->usage().truncated_tokens, 2);
  EXPECT_EQ((*item)->usage().input_tokens, 256);
}

TEST(LsTextEdgesTest, CheckpointsThatDoNotFitAreRefusedByName) {
  const Broken cases[] = {
      {"missing", [](EditedModel& m) { m.tensors.erase("model.transformer_1.mha.W_o.bias"); },
       "model.transformer_1.mha.W_o.bias"},
      {"no class vector", [](EditedModel& m) { m.tensors.erase("model.cls_embed"); },
       "model.cls_embed"},
      {"class vector of a model without", [](EditedModel& m) { m.config["cls_mode"] = "none"; },
       "model.cls_embed"},
      {"convolution",
       [](EditedModel& m) {
         m.tensors["model.transformer_0.mha.conv.weight"] = {{1}, {1}};
       },
       "mha.conv.weight"},
      {"other rank", [](EditedModel& m) { m.config["rank"] = 7; }, "dconv_fc.weight"},
      {"a layer more", [](EditedModel& m) { m.config["layers"] = 3; }, "model.transformer_2"},
      {"a layer less", [](EditedModel& m) { m.config["layers"] = 1; }, "model.transformer_1"},
      {"tied", [](EditedModel& m) { m.config["tied_weights"] = true; }, "model.transformer."},
      {"pair head",
       [](EditedModel& m) {
         m.config["architectures"] = {"TransformerLSForSequencePairClassification"};
       },
       "seq_classifer.mlpblock.0.weight"},
      {"pooling", [](EditedModel& m) { m.config["max_seq_len"] = 65; }, "position_embeddings"},
  };
  for (const Broken& broken : cases) ExpectRefusedByName(Case("interior_mask"), broken);
}

TEST(LsTextEdgesTest, InspectionExplains) {
  ExpectExplained(Case("listops_w8_r32"), "transformer_ls_text");
  ExpectExplained(Case("listops_w8_r32"), "text-classification");
  ExpectExplained(Case("retrieval_pair_w8_r32"), "bytes, ids up to 256");
  ExpectExplained(Case("retrieval_pair_w8_r32"), "text-pair-classification");
}

TEST(LsTextEdgesTest, CostsGrowLinearlyAndBytesAreThoseOfTheRun) {
  const auto model = Case("listops_best_w16_r2_long").Load("fp32");
  ExpectLinearBytes(*model, 2048, 40);
}

}  // namespace
}  // namespace longview::models
