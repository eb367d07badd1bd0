// Properties that hold whatever the weights: lengths, padding and masks, requests that cannot be
// read, checkpoints that do not fit their configuration.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "tests/models/longformer/edited_model.h"

namespace longview::models {
namespace {

GoldenCase Case(const std::string& name) { return GoldenCase(name, "cst"); }

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

std::vector<float> States(const Model& model, TokenInput tokens) {
  const Answer answer =
      RunAlone(model, TokenRequest(Task::kEmbedding, std::move(tokens), {"last_hidden_state"}));
  const auto values = answer.tensors.at(0).floats();
  return {values.begin(), values.end()};
}

// Classifiers that between them take every path of a layer.
const char* const kClassifiers[] = {"lra_alpha2_mask",
                                    "lra_alpha3_zero_separate",
                                    "lra_global_first",
                                    "lra_mlp",
                                    "lra_parallel",
                                    "lra_pool_linear",
                                    "lra_pool_max",
                                    "lra_tiled_per_layer_tables",
                                    "lra_zero_ids_mean_padded"};

TEST(CstEdgesTest, EveryLengthAroundTheSliceIsFinite) {
  for (const char* name : kClassifiers) {
    const auto model = Case(name).Load("fp32");
    for (int tokens = 1; tokens <= model->info().max_tokens; tokens += tokens < 18 ? 1 : 11) {
      for (const float value : Logits(*model, RandomIds(tokens, 1))) {
        ASSERT_TRUE(std::isfinite(value)) << name << " " << tokens;
      }
    }
  }
}

// attention_mask zeros at the end are no part of the document, with either boundary.
TEST(CstEdgesTest, PaddingChangesNoBit) {
  for (const char* name : kClassifiers) {
    const auto model = Case(name).Load("fp32");
    const int length = 21, slice = 8;
    const std::vector<float> want = Logits(*model, RandomIds(length, 2));
    const std::vector<float> states = States(*model, RandomIds(length, 2));
    for (const int pads : {1, slice - 1, slice, 2 * slice + 1}) {
      TokenInput tokens = RandomIds(length, 2);
      tokens.ids.resize(static_cast<size_t>(length + pads), 7);
      tokens.attention_mask.assign(static_cast<size_t>(length + pads), 1);
      std::fill(tokens.attention_mask.begin() + length, tokens.attention_mask.end(), uint8_t{0});
      EXPECT_EQ(Logits(*model, tokens), want) << name << " " << pads;
      // Whoever wants a row per token gets the padding's too; the document stays the same.
      std::vector<float> padded = States(*model, tokens);
      ASSERT_EQ(padded.size() / tokens.ids.size(), states.size() / length) << name;
      for (const float value : padded) ASSERT_TRUE(std::isfinite(value)) << name;
      padded.resize(states.size());
      EXPECT_EQ(padded, states) << name << " " << pads;
    }
  }
}

// The content of masked places is nobody's business, whole slices of them included.
TEST(CstEdgesTest, MaskedTokensAreNotRead) {
  for (const char* name : kClassifiers) {
    const auto model = Case(name).Load("fp32");
    TokenInput tokens = RandomIds(38, 3);
    tokens.attention_mask.assign(38, 1);
    for (const int t : {1, 8, 9, 10, 11, 12, 13, 14, 15, 33}) {
      tokens.attention_mask[static_cast<size_t>(t)] = 0;
    }
    const std::vector<float> want = Logits(*model, tokens);
    for (size_t t = 0; t < 38; ++t) {
      if (tokens.attention_mask[t] == 0) tokens.ids[t] = 1 + static_cast<int32_t>(t) % 30;
    }
    EXPECT_EQ(Logits(*model, tokens), want) << name;
  }
}

// pad_mask_source nonzero_id: the id masks as attention_mask does.
TEST(CstEdgesTest, IdZeroMasks) {
  const auto model = Case("lra_zero_ids_masked").Load("fp32");
  TokenInput tokens = RandomIds(20, 4);
  tokens.attention_mask.assign(20, 1);
  TokenInput zeros = tokens;
  for (const size_t t : {3, 4, 17}) {
    tokens.attention_mask[t] = 0;
    zeros.ids[t] = 0;
  }
  EXPECT_EQ(Logits(*model, zeros), Logits(*model, tokens));
  TokenInput nothing;
  nothing.ids.assign(20, 0);
  for (const float value : Logits(*model, nothing)) EXPECT_TRUE(std::isfinite(value));
}

TEST(CstEdgesTest, TheOrderOfDocumentsOfAPairMatters) {
  for (const char* name : {"lra_retrieval_nli", "lra_retrieval_concat"}) {
    const auto model = Case(name).Load("fp32");
    Request pair = TokenRequest(Task::kTextPairClassification, RandomIds(30, 5), {"logits"});
    pair.tokens_pair = RandomIds(41, 6);
    Request swapped = pair;
    std::swap(swapped.tokens, swapped.tokens_pair);
    EXPECT_NE(RunAlone(*model, pair).tensors[0].data, RunAlone(*model, swapped).tensors[0].data);
  }
}

TEST(CstEdgesTest, ThePoolerReadsTheMean) {
  const auto model = Case("glue_pooler").Load("fp32");
  Request request = TokenRequest(Task::kEmbedding, RandomIds(25, 7), {"embedding"});
  request.pooling = "pooler";
  const Answer pooled = RunAlone(*model, request);
  for (const float value : pooled.tensors[0].floats()) EXPECT_LE(std::abs(value), 1.0f);
  request.pooling = "mean";
  EXPECT_NE(RunAlone(*model, request).tensors[0].data, pooled.tensors[0].data);
}

TEST(CstEdgesTest, RequestsThatCannotBeRead) {
  const auto model = Case("lra_L8").Load("fp32");
  const auto refused = [&](const Model& by, const Request& request, const std::string& part) {
    const auto item = by.Prepare(request);
    ASSERT_FALSE(item.ok()) << part;
    EXPECT_NE(item.status().message().find(part), std::string::npos) << item.status();
  };
  refused(*model, Classify(RandomIds(65, 1)), "64");
  refused(*model, Classify({{3, 40}, {}, {}, {}}), "[0, 40)");
  TokenInput left = RandomIds(4, 1);
  left.attention_mask = {0, 1, 1, 1};
  refused(*model, Classify(left), "position 0 is masked");
  Request globals = Classify(RandomIds(5, 1));
  globals.global_positions = {0};
  refused(*model, globals, "no global attention");
  Request types = Classify(RandomIds(2, 1));
  types.tokens->token_type_ids = {0, 0};
  refused(*model, types, "no token types");
  Request second = Classify(RandomIds(2, 1));
  second.tokens_pair = RandomIds(2, 1);
  refused(*model, second, "token_ids_pair");
  Request cls = TokenRequest(Task::kEmbedding, RandomIds(5, 1), {"embedding"});
  cls.pooling = "cls";
  refused(*model, cls, "no class token");
  cls.pooling = "pooler";
  refused(*model, cls, "pooler");
  const auto glue = Case("glue_pooler").Load("fp32");
  Request type = Classify(RandomIds(2, 1));
  type.tokens->token_type_ids = {0, 2};
  refused(*glue, type, "[0, 2)");
  EXPECT_EQ(model->Prepare(TokenRequest(Task::kFillMask, RandomIds(5, 1), {})).status().code(),
            absl::StatusCode::kUnimplemented);
}

struct Broken {
  const char* golden;
  const char* what;
  std::function<void(EditedModel&)> edit;
  const char* part;  // Of the message.
};

const std::string kSelf = "cst.encoder.layer.0.attention.self.";

TEST(CstEdgesTest, CheckpointsThatDoNotFitAreRefusedByName) {
  const Broken cases[] = {
      {"lra_L8", "missing", [](EditedModel& m) { m.tensors.erase(kSelf + "key.bias"); },
       "self.key.bias"},
      {"lra_L8", "one too many",
       [](EditedModel& m) {
         m.tensors[kSelf + "rel.weight"] = {{1}, {1}};
       },
       "rel.weight"},
      {"lra_L8", "biases", [](EditedModel& m) { m.config["attention_bias"] = false; }, "bias"},
      {"lra_L8", "scales", [](EditedModel& m) { m.config["share_local_global"] = false; },
       "query_global"},
      {"lra_alpha3_zero_separate", "scales",
       [](EditedModel& m) { m.config["share_local_global"] = true; }, "_global"},
      {"lra_L8", "extension", [](EditedModel& m) { m.config["extension_ratio"] = 2; },
       "local_embeddings"},
      {"lra_alpha2_mask", "tiles",
       [](EditedModel& m) { m.config["local_position_extension"] = "tiled"; }, "local_embeddings"},
      {"lra_L8", "slices", [](EditedModel& m) { m.config["max_position_embeddings"] = 65; },
       "global_embeddings"},
      {"lra_L8", "positions", [](EditedModel& m) { m.config["position_embedding"] = "none"; },
       "ms_vipe"},
      {"lra_conventional", "positions",
       [](EditedModel& m) { m.config["position_embedding"] = "ms_vipe"; }, "local_embeddings"},
      {"lra_L8", "tables per layer",
       [](EditedModel& m) { m.config["ms_vipe_shared_across_layers"] = false; },
       "self.ms_vipe.local_embeddings"},
      {"lra_L8", "no output",
       [](EditedModel& m) { m.config["attention_output_projection"] = false; },
       "attention.output.dense"},
      {"lra_L8", "linear pooling", [](EditedModel& m) { m.config["slice_pooling"] = "linear"; },
       "slice_pooling.weight"},
      {"lra_mlp", "attention", [](EditedModel& m) { m.config["local_mixer"] = "attention"; },
       "local_embeddings"},
      {"lra_L8", "a last norm less", [](EditedModel& m) { m.config["final_layer_norm"] = false; },
       "cst.encoder.LayerNorm"},
      {"lra_L8", "types", [](EditedModel& m) { m.config["type_vocab_size"] = 2; },
       "token_type_embeddings"},
      {"lra_L8", "a layer more", [](EditedModel& m) { m.config["num_hidden_layers"] = 3; },
       "layer.2"},
      {"lra_L8", "a layer less", [](EditedModel& m) { m.config["num_hidden_layers"] = 1; },
       "layer.1"},
      {"lra_L8", "pairs", [](EditedModel& m) { m.config["head"] = "lra_matching"; },
       "classifier.dense.weight"},
      {"mlm_alpha3", "untied", [](EditedModel& m) { m.config["tie_word_embeddings"] = false; },
       "cls.predictions.decoder.weight"},
      {"mlm_factorised", "tied", [](EditedModel& m) { m.config["tie_word_embeddings"] = true; },
       "cls.predictions.decoder.weight"},
      {"glue_pooler", "pooler", [](EditedModel& m) { m.config["pooler"] = "none"; },
       "cst.pooler.dense"},
  };
  for (const Broken& broken : cases) {
    EditedModel edited{Case(broken.golden)};
    broken.edit(edited);
    const auto model = edited.Load();
    ASSERT_FALSE(model.ok()) << broken.golden << " " << broken.what;
    EXPECT_NE(model.status().message().find(broken.part), std::string::npos) << model.status();
    const Inspection inspection = InspectDirectory(edited.directory());
    EXPECT_FALSE(inspection.servable) << broken.what;
    EXPECT_NE(inspection.error.find(broken.part), std::string::npos) << inspection.error;
  }
}

TEST(CstEdgesTest, InspectionExplains) {
  const auto report = [](const char* name) {
    const Inspection inspection = InspectDirectory(Case(name).directory());
    EXPECT_TRUE(inspection.servable) << inspection.error;
    return inspection.report;
  };
  EXPECT_NE(report("lra_L8").find("cst"), std::string::npos);
  EXPECT_NE(report("lra_L8").find("text-classification"), std::string::npos);
  EXPECT_NE(report("lra_retrieval_nli").find("text-pair-classification"), std::string::npos);
  EXPECT_NE(report("mlm_alpha3").find("fill-mask"), std::string::npos);
}

TEST(CstEdgesTest, BytesAreThoseOfTheRunAndGrowWithTheText) {
  const auto model = Case("lra_L8").Load("fp32");
  ASSERT_TRUE(model->WarmUp().ok());
  const auto half = model->EstimateTokens(32), full = model->EstimateTokens(64);
  ASSERT_TRUE(half.ok() && full.ok());
  EXPECT_LT(full->workspace_bytes, 2 * half->workspace_bytes);
  const auto item = model->Prepare(Classify(RandomIds(64, 9)));
  EXPECT_EQ((*item)->cost().workspace_bytes, full->workspace_bytes);
  EXPECT_FALSE(model->EstimateTokens(65).ok());
}

}  // namespace
}  // namespace longview::models
