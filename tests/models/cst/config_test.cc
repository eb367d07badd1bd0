// config.json: what is read, and a table of what is refused by name.
#include "models/cst/config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/models/config/parse_with.h"

namespace longview::models {
namespace {

nlohmann::json Small() {
  return nlohmann::json::parse(R"({
    "architectures": ["CSTForSequenceClassification"], "model_type": "cst",
    "head": "lra_classifier", "vocab_size": 257, "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "intermediate_size": 128, "max_position_embeddings": 1000,
    "slice_length": 16, "num_labels": 2})");
}

nlohmann::json Causal() {
  nlohmann::json json = Small();
  json["architectures"] = {"CSTForCausalLM"};
  json["head"] = "causal_lm";
  return json;
}

constexpr auto Parse = ParseWith<ParseCstConfig>;

TEST(CstConfigTest, ReadsSizesAndDefaults) {
  const auto config = Parse(Small());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->head, CstHead::kClassifier);
  EXPECT_EQ(config->embedding_width, 64);
  EXPECT_EQ(config->head_hidden, 128);
  EXPECT_EQ(config->extension, 0);
  EXPECT_EQ(config->most_slices(), 63);
  EXPECT_EQ(config->norms, NormPlace::kPre);
  EXPECT_TRUE(config->final_norm);
  EXPECT_TRUE(config->shared_scales);
  EXPECT_TRUE(config->multi_scale());
  EXPECT_FALSE(config->relative_keys());
  EXPECT_FLOAT_EQ(config->norm_eps, 1e-5f);
}

TEST(CstConfigTest, FollowsWhatOthersSay) {
  nlohmann::json json = Small();
  json["norm_position"] = "post";
  EXPECT_FALSE(Parse(json)->final_norm);
  json["final_layer_norm"] = true;
  EXPECT_TRUE(Parse(json)->final_norm);
  json.erase("head");
  EXPECT_EQ(Parse(json)->head, CstHead::kPooled);
  json["extension_ratio"] = 2;
  EXPECT_EQ(Parse(json)->extension, 8);
  EXPECT_EQ(Parse(json)->local_keys(), 32);
  EXPECT_TRUE(Parse(json)->relative_keys());
  json["slice_length"] = 3;
  json["extension_ratio"] = 5.0 / 3.0;
  EXPECT_EQ(Parse(json)->extension, 1);
  nlohmann::json causal = Causal();
  causal["extension_ratio"] = 3;
  EXPECT_EQ(Parse(causal)->local_keys(), 32);
}

TEST(CstConfigTest, AdaptiveSoftmaxHasThreeTailsUnlessToldOtherwise) {
  nlohmann::json json = Causal();
  json["lm_head"] = "adaptive";
  json["vocab_size"] = 267735;
  EXPECT_EQ(Parse(json)->cutoffs, (std::vector<int>{20000, 40000, 200000}));
  json["vocab_size"] = 200000;
  EXPECT_FALSE(Parse(json).ok());
  json["adaptive_cutoffs"] = {7};
  EXPECT_EQ(Parse(json)->cutoffs, std::vector<int>{7});
}

struct Refused {
  const char* key;
  nlohmann::json value;
};

void ExpectRefused(nlohmann::json json, const Refused& refused) {
  json[refused.key] = refused.value;
  const auto config = Parse(json);
  ASSERT_FALSE(config.ok()) << refused.key << " = " << refused.value;
  EXPECT_NE(config.status().message().find(refused.key), std::string::npos) << config.status();
}

TEST(CstConfigTest, RefusesByName) {
  const Refused cases[] = {
      {"model_type", "longformer"},
      {"head", "masked_lm"},
      {"vocab_size", 0},
      {"hidden_size", 63},
      {"num_attention_heads", 0},
      {"num_hidden_layers", 0},
      {"intermediate_size", -4},
      {"hidden_act", "silu"},
      {"layer_norm_eps", -1.0},
      {"max_position_embeddings", 0},
      {"is_decoder", true},
      {"slice_length", 0},
      {"slice_length", 1.5},
      {"extension_ratio", 0.5},
      {"extension_ratio", 3.125},
      {"extension_ratio", 1.01},
      {"position_embedding", "sinusoidal"},
      {"local_position_extension", "mirrored"},
      {"ext_boundary", "wrap"},
      {"first_slice_global", "mean"},
      {"global_query_shift", "none"},
      {"slice_pooling", "first"},
      {"msmra_order", "local_first"},
      {"local_mixer", "mlp"},  // Needs local_mixer_size.
      {"norm_position", "sandwich"},
      {"embedding_scale", "sqrt"},
      {"type_vocab_size", -1},
      {"pad_mask_source", "id"},
      {"pooling", "max"},
      {"classifier_hidden_size", 0},
      {"pair_interaction", "sum"},
      {"pooler", "relu"},
      {"window", 3},
  };
  for (const Refused& refused : cases) ExpectRefused(Small(), refused);
  nlohmann::json wide = Small();
  wide["hidden_size"] = 1024;
  EXPECT_NE(Parse(wide).status().message().find("128"), std::string::npos);
  nlohmann::json mixer = Small();
  mixer["local_mixer"] = "mlp";
  mixer["local_mixer_size"] = 8;
  EXPECT_TRUE(Parse(mixer).ok());
  mixer["extension_ratio"] = 2;
  EXPECT_FALSE(Parse(mixer).ok());
}

TEST(CstConfigTest, RefusesByNameWhatACausalModelHasNot) {
  const Refused cases[] = {
      {"is_decoder", false},       {"head", "lra_classifier"},
      {"embedding_size", 32},      {"pad_mask_source", "nonzero_id"},
      {"lm_head", "hierarchical"}, {"local_mixer", "mlp"},
  };
  for (const Refused& refused : cases) ExpectRefused(Causal(), refused);
  nlohmann::json adaptive = Causal();
  adaptive["lm_head"] = "adaptive";
  adaptive["adaptive_cutoffs"] = {10, 20};
  EXPECT_TRUE(Parse(adaptive).ok());
  ExpectRefused(adaptive, {"adaptive_cutoffs", {20, 10}});
  ExpectRefused(adaptive, {"adaptive_cutoffs", {10, 10}});
  ExpectRefused(adaptive, {"adaptive_cutoffs", {10, 257}});
  ExpectRefused(adaptive, {"adaptive_cutoffs", nlohmann::json::array()});
  ExpectRefused(adaptive, {"tie_word_embeddings", false});
}

TEST(CstConfigTest, RequiredKeysAreNamed) {
  for (const char* key :
       {"model_type", "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
        "intermediate_size", "max_position_embeddings", "slice_length"}) {
    nlohmann::json json = Small();
    json.erase(key);
    const auto config = Parse(json);
    ASSERT_FALSE(config.ok()) << key;
    EXPECT_NE(config.status().message().find(key), std::string::npos) << config.status();
  }
}

}  // namespace
}  // namespace longview::models
