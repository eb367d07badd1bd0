// Properties that hold whatever the weights: the edge list of the specification, requests that
// cannot be read, checkpoints that do not fit their configuration.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "tests/models/longformer/edited_model.h"

namespace longview::models {
namespace {

GoldenCase Case(const std::string& name) { return GoldenCase(name, "transformer_ls_text"); }

TokenInput RandomIds(int count, uint32_t seed, int vocab = 40) {
  std::mt19937 random(seed);
  TokenInput tokens;
  for (int i = 0; i < count; ++i) {
    tokens.ids.push_back(1 + static_cast<int32_t>(random() % static_cast<uint32_t>(vocab - 1)));
  }
  return tokens;
}

Request Classify(TokenInput tokens) {
  return TokenRequest(Task::kTextClassification, std::move(tokens), {"logits"});
}

std::vector<float> Logits(const Model& model, TokenInput tokens) {
  const Answer answer = RunAlone(model, Classify(std::move(tokens)));
  const auto values = answer.tensors.at(0).floats();
  return {values.begin(), values.end()};
}

double Difference(const std::vector<float>& a, const std::vector<float>& b) {
  return LargestDifference(a, std::vector<double>(b.begin(), b.end()));
}

TEST(LsTextEdgesTest, EveryLengthAroundTheWindowIsFinite) {
  for (const char* name : {"interior_mask", "all_layers_tied_w3", "first_token_w4_r2",
                           "mean_length_w2_r0", "one_layer_w4_r3"}) {
    const auto model = Case(name).Load("fp32");
    for (const int tokens : {1, 2, 3, 4, 5, 7, 8, 9, 12, 17, 33, 63, 64}) {
      for (const float value : Logits(*model, RandomIds(tokens, 1))) {
        ASSERT_TRUE(std::isfinite(value)) << name << " " << tokens;
      }
    }
  }
}

TEST(LsTextEdgesTest, TrailingZerosChangeNoBit) {
  for (const char* name : {"interior_mask", "mean_length_w2_r0"}) {
    const auto model = Case(name).Load("fp32");
    TokenInput tokens = RandomIds(21, 2);
    const std::vector<float> want = Logits(*model, tokens);
    tokens.ids.resize(34);
    EXPECT_EQ(Logits(*model, tokens), want) << name;
    TokenInput masked = RandomIds(21, 2);
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
  TokenInput tokens = RandomIds(40, 3);
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
  const std::vector<float> want = Logits(*golden.Load("fp32"), RandomIds(50, 4));
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
  EXPECT_LE(Difference(Logits(**model, RandomIds(50, 4)), want), 1e-5);
}

TEST(LsTextEdgesTest, SwappedDocumentsDifferAndEqualOnesDoNot) {
  const auto model = Case("retrieval_pair_w8_r32").Load("fp32");
  Request pair = TokenRequest(Task::kTextPairClassification, RandomIds(50, 5, 257), {"logits"});
  pair.tokens_pair = RandomIds(70, 6, 257);
  Request swapped = pair;
  std::swap(swapped.tokens, swapped.tokens_pair);
  EXPECT_NE(RunAlone(*model, pair).tensors[0].data, RunAlone(*model, swapped).tensors[0].data);
}

TEST(LsTextEdgesTest, RequestsThatCannotBeRead) {
  const auto model = Case("interior_mask").Load("fp32");
  const auto refused = [&](const Model& by, const Request& request, const std::string& part) {
    const auto item = by.Prepare(request);
    ASSERT_FALSE(item.ok()) << part;
    EXPECT_NE(item.status().message().find(part), std::string::npos) << item.status();
  };
  refused(*model, Classify(RandomIds(65, 1)), "64");
  refused(*model, Classify({{0, 0, 0}, {}, {}, {}}), "every token is masked");
  refused(*model, Classify({{3, 40}, {}, {}, {}}), "[0, 40)");
  Request globals = Classify(RandomIds(5, 1));
  globals.global_positions = {0};
  refused(*model, globals, "no global attention");
  Request types = Classify(RandomIds(2, 1));
  types.tokens->token_type_ids = {0, 0};
  refused(*model, types, "no token types");
  Request second = Classify(RandomIds(2, 1));
  second.tokens_pair = RandomIds(2, 1);
  refused(*model, second, "token_ids_pair");
  Request text;
  text.text = "a text";
  refused(*model, text, "no tokenizer");
  const auto mean = Case("mean_length_w2_r0").Load("fp32");
  Request cls = TokenRequest(Task::kEmbedding, RandomIds(5, 1), {"embedding"});
  cls.pooling = "cls";
  refused(*mean, cls, "no class token");
  const auto pairs = Case("retrieval_pair_w8_r32").Load("fp32");
  refused(*pairs, TokenRequest(Task::kTextPairClassification, RandomIds(5, 1), {"logits"}),
          "token_ids_pair");
  EXPECT_EQ(model->Prepare(TokenRequest(Task::kFillMask, RandomIds(5, 1), {})).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(LsTextEdgesTest, EachDocumentOfAPairHasTheWholeLimit) {
  const auto model = Case("retrieval_pair_w8_r32").Load("fp32");
  Request pair = TokenRequest(Task::kTextPairClassification, RandomIds(128, 5, 257), {"logits"});
  pair.tokens_pair = RandomIds(128, 6, 257);
  EXPECT_TRUE(model->Prepare(pair).ok());
  pair.tokens_pair = RandomIds(130, 6, 257);
  EXPECT_FALSE(model->Prepare(pair).ok());
  pair.truncate = true;
  const auto item = model->Prepare(pair);
  ASSERT_TRUE(item.ok()) << item.status();
  EXPECT_EQ((*item)->usage().truncated_tokens, 2);
  EXPECT_EQ((*item)->usage().input_tokens, 256);
}

struct Broken {
  const char* what;
  std::function<void(EditedModel&)> edit;
  const char* part;  // Of the message.
};

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
  for (const Broken& broken : cases) {
    EditedModel edited{Case("interior_mask")};
    broken.edit(edited);
    const auto model = edited.Load();
    ASSERT_FALSE(model.ok()) << broken.what;
    EXPECT_NE(model.status().message().find(broken.part), std::string::npos) << model.status();
    const Inspection inspection = InspectDirectory(edited.directory());
    EXPECT_FALSE(inspection.servable) << broken.what;
    EXPECT_NE(inspection.error.find(broken.part), std::string::npos) << inspection.error;
  }
}

TEST(LsTextEdgesTest, InspectionExplains) {
  const Inspection inspection = InspectDirectory(Case("listops_w8_r32").directory());
  EXPECT_TRUE(inspection.servable) << inspection.error;
  EXPECT_NE(inspection.report.find("transformer_ls_text"), std::string::npos);
  EXPECT_NE(inspection.report.find("text-classification"), std::string::npos);
  const Inspection bytes = InspectDirectory(Case("retrieval_pair_w8_r32").directory());
  EXPECT_NE(bytes.report.find("bytes, ids up to 256"), std::string::npos) << bytes.report;
  EXPECT_NE(bytes.report.find("text-pair-classification"), std::string::npos);
}

TEST(LsTextEdgesTest, CostsGrowLinearlyAndBytesAreThoseOfTheRun) {
  const auto model = Case("listops_best_w16_r2_long").Load("fp32");
  ASSERT_TRUE(model->WarmUp().ok());
  const auto half = model->EstimateTokens(1024), full = model->EstimateTokens(2048);
  ASSERT_TRUE(half.ok() && full.ok());
  EXPECT_LT(full->workspace_bytes, 2 * half->workspace_bytes);
  const auto item = model->Prepare(Classify(RandomIds(2048, 9)));
  EXPECT_EQ((*item)->cost().workspace_bytes, full->workspace_bytes);
  EXPECT_FALSE(model->EstimateTokens(2049).ok());
}

}  // namespace
}  // namespace longview::models
