// Properties that hold whatever the weights: lengths, padding and masks, requests that cannot be
// read, checkpoints that do not fit their configuration.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/models/encoder/edge_frame.h"

namespace longview::models {
namespace {

GoldenCase Case(const std::string& name) { return GoldenCase(name, "cst"); }

TokenInput Ids(int count, uint32_t seed) { return RandomIds(count, seed, 1, 40); }

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
      ExpectFinite(Logits(*model, Ids(tokens, 1)), name);
    }
  }
}

// attention_mask zeros at the end are no part of the document, with either boundary.
TEST(CstEdgesTest, PaddingChangesNoBit) {
  for (const char* name : kClassifiers) {
    const auto model = Case(name).Load("fp32");
    const int length = 21, slice = 8;
    const std::vector<float> want = Logits(*model, Ids(length, 2));
    const std::vector<float> states = LastHiddenState(*model, Ids(length, 2));
    for (const int pads : {1, slice - 1, slice, 2 * slice + 1}) {
      TokenInput tokens = Ids(length, 2);
      tokens.ids.resize(static_cast<size_t>(length + pads), 7);
      tokens.attention_mask.assign(static_cast<size_t>(length + pads), 1);
      std::fill(tokens.attention_mask.begin() + length, tokens.attention_mask.end(), uint8_t{0});
      EXPECT_EQ(Logits(*model, tokens), want) << name << " " << pads;
      // Whoever wants a row per token gets the padding's too; the document stays the same.
      std::vector<float> padded = LastHiddenState(*model, tokens);
      ASSERT_EQ(padded.size() / tokens.ids.size(), states.size() / length) << name;
      ExpectFinite(padded, name);
      padded.resize(states.size());
      EXPECT_EQ(padded, states) << name << " " << pads;
    }
  }
}

// The content of masked places is nobody's business, whole slices of them included.
TEST(CstEdgesTest, MaskedTokensAreNotRead) {
  for (const char* name : kClassifiers) {
    const auto model = Case(name).Load("fp32");
    TokenInput tokens = Ids(38, 3);
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
  TokenInput tokens = Ids(20, 4);
  tokens.attention_mask.assign(20, 1);
  TokenInput zeros = tokens;
  for (const size_t t : {3, 4, 17}) {
    tokens.attention_mask[t] = 0;
    zeros.ids[t] = 0;
  }
  EXPECT_EQ(Logits(*model, zeros), Logits(*model, tokens));
  TokenInput nothing;
  nothing.ids.assign(20, 0);
  ExpectFinite(Logits(*model, nothing), "no token");
}

TEST(CstEdgesTest, TheOrderOfDocumentsOfAPairMatters) {
  for (const char* name : {"lra_retrieval_nli", "lra_retrieval_concat"}) {
    const auto model = Case(name).Load("fp32");
    Request pair = TokenRequest(Task::kTextPairClassification, Ids(30, 5), {"logits"});
    pair.tokens_pair = Ids(41, 6);
    ExpectOrderMatters(*model, pair);
  }
}

TEST(CstEdgesTest, ThePoolerReadsTheMean) {
  const auto model = Case("glue_pooler").Load("fp32");
  Request request = TokenRequest(Task::kEmbedding, Ids(25, 7), {"embedding"});
  request.pooling = "pooler";
  const Answer pooled = RunAlone(*model, request);
  for (const float value : pooled.tensors[0].floats()) EXPECT_LE(std::abs(value), 1.0f);
  request.pooling = "mean";
  EXPECT_NE(RunAlone(*model, request).tensors[0].data, pooled.tensors[0].data);
}

TEST(CstEdgesTest, RequestsThatCannotBeRead) {
  const auto model = Case("lra_L8").Load("fp32");
  ExpectPlainIdsOnly(*model, 64, 40);
  TokenInput left = Ids(4, 1);
  left.attention_mask = {0, 1, 1, 1};
  ExpectRefused(*model, Classify(left), "position 0 is masked");
  Request cls = TokenRequest(Task::kEmbedding, Ids(5, 1), {"embedding"});
  cls.pooling = "cls";
  ExpectRefused(*model, cls, "no class token");
  cls.pooling = "pooler";
  ExpectRefused(*model, cls, "pooler");
  const auto glue = Case("glue_pooler").Load("fp32");
  Request type = Classify(Ids(2, 1));
  type.tokens->token_type_ids = {0, 2};
  ExpectRefused(*glue, type, "[0, 2)");
}

const std::string kSelf = "cst.encoder.layer.0.attention.self.";

TEST(CstEdgesTest, CheckpointsThatDoNotFitAreRefusedByName) {
  const struct {
    const char* golden;
    Broken broken;
  } cases[] = {
      {"lra_L8",
       {"missing", [](EditedModel& m) { m.tensors.erase(kSelf + "key.bias"); }, "self.key.bias"}},
      {"lra_L8",
       {"one too many",
        [](EditedModel& m) {
          m.tensors[kSelf + "rel.weight"] = {{1}, {1}};
        },
        "rel.weight"}},
      {"lra_L8", {"biases", [](EditedModel& m) { m.config["attention_bias"] = false; }, "bias"}},
      {"lra_L8",
       {"scales", [](EditedModel& m) { m.config["share_local_global"] = false; }, "query_global"}},
      {"lra_alpha3_zero_separate",
       {"scales", [](EditedModel& m) { m.config["share_local_global"] = true; }, "_global"}},
      {"lra_L8",
       {"extension", [](EditedModel& m) { m.config["extension_ratio"] = 2; }, "local_embeddings"}},
      {"lra_alpha2_mask",
       {"tiles", [](EditedModel& m) { m.config["local_position_extension"] = "tiled"; },
        "local_embeddings"}},
      {"lra_L8",
       {"slices", [](EditedModel& m) { m.config["max_position_embeddings"] = 65; },
        "global_embeddings"}},
      {"lra_L8",
       {"positions", [](EditedModel& m) { m.config["position_embedding"] = "none"; }, "ms_vipe"}},
      {"lra_conventional",
       {"positions", [](EditedModel& m) { m.config["position_embedding"] = "ms_vipe"; },
        "local_embeddings"}},
      {"lra_L8",
       {"tables per layer",
        [](EditedModel& m) { m.config["ms_vipe_shared_across_layers"] = false; },
        "self.ms_vipe.local_embeddings"}},
      {"lra_L8",
       {"no output", [](EditedModel& m) { m.config["attention_output_projection"] = false; },
        "attention.output.dense"}},
      {"lra_L8",
       {"linear pooling", [](EditedModel& m) { m.config["slice_pooling"] = "linear"; },
        "slice_pooling.weight"}},
      {"lra_mlp",
       {"attention", [](EditedModel& m) { m.config["local_mixer"] = "attention"; },
        "local_embeddings"}},
      {"lra_L8",
       {"a last norm less", [](EditedModel& m) { m.config["final_layer_norm"] = false; },
        "cst.encoder.LayerNorm"}},
      {"lra_L8",
       {"types", [](EditedModel& m) { m.config["type_vocab_size"] = 2; }, "token_type_embeddings"}},
      {"lra_L8",
       {"a layer more", [](EditedModel& m) { m.config["num_hidden_layers"] = 3; }, "layer.2"}},
      {"lra_L8",
       {"a layer less", [](EditedModel& m) { m.config["num_hidden_layers"] = 1; }, "layer.1"}},
      {"lra_L8",
       {"pairs", [](EditedModel& m) { m.config["head"] = "lra_matching"; },
        "classifier.dense.weight"}},
      {"mlm_alpha3",
       {"untied", [](EditedModel& m) { m.config["tie_word_embeddings"] = false; },
        "cls.predictions.decoder.weight"}},
      {"mlm_factorised",
       {"tied", [](EditedModel& m) { m.config["tie_word_embeddings"] = true; },
        "cls.predictions.decoder.weight"}},
      {"glue_pooler",
       {"pooler", [](EditedModel& m) { m.config["pooler"] = "none"; }, "cst.pooler.dense"}},
  };
  for (const auto& [golden, broken] : cases) ExpectRefusedByName(Case(golden), broken);
}

TEST(CstEdgesTest, InspectionExplains) {
  ExpectExplained(Case("lra_L8"), "cst");
  ExpectExplained(Case("lra_L8"), "text-classification");
  ExpectExplained(Case("lra_retrieval_nli"), "text-pair-classification");
  ExpectExplained(Case("mlm_alpha3"), "fill-mask");
}

TEST(CstEdgesTest, BytesAreThoseOfTheRunAndGrowWithTheText) {
  const auto model = Case("lra_L8").Load("fp32");
  ExpectLinearBytes(*model, 64, 40);
}

}  // namespace
}  // namespace longview::models
