// config.json: what is read, and a table of what is refused by name.
#include "models/luna/config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/models/config/parse_with.h"

namespace longview::models {
namespace {

nlohmann::json Classifier() {
  return nlohmann::json::parse(R"({
    "architectures": ["LunaForSequenceClassification"], "model_type": "luna",
    "vocab_size": 25, "hidden_size": 32, "ffn_size": 64, "num_layers": 2, "num_heads": 4,
    "proj_len": 8, "max_positions": 48, "classifier_out_dim": 64, "num_labels": 2})");
}

constexpr auto Parse = ParseWith<ParseLunaConfig>;

TEST(LunaConfigTest, DefaultsOfTheLongRangeArenaModels) {
  const auto config = Parse(Classifier());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->head, LunaHead::kLra);
  EXPECT_FALSE(config->tied_kv);
  EXPECT_TRUE(config->dynamic);
  EXPECT_TRUE(config->embedding_norm);
  EXPECT_EQ(config->pack_heads, 4);
  EXPECT_EQ(config->position_rows(), 50);
  EXPECT_EQ(config->hidden, std::vector<int>({64}));
}

TEST(LunaConfigTest, HeadsOfTheOtherArchitectures) {
  nlohmann::json json = Classifier();
  json["architectures"] = {"LunaForMaskedLM"};
  const auto mlm = Parse(json);
  ASSERT_TRUE(mlm.ok()) << mlm.status();
  EXPECT_EQ(mlm->head, LunaHead::kMaskedLm);
  EXPECT_TRUE(mlm->tied_kv);
  json["architectures"] = {"LunaForSequencePairClassification"};
  EXPECT_EQ(Parse(json)->features(), 64);
  json["architectures"] = {"LunaForSequenceClassification"};
  json["head"] = "sequence_classification";
  json["classification_head"] = "attention_classification_head";
  EXPECT_EQ(Parse(json)->head, LunaHead::kProjectedHead);
  json["classification_head"] = "pooling_classification_head";
  EXPECT_EQ(Parse(json)->head, LunaHead::kProjectedMax);
  json["classification_head"] = "mnli";
  EXPECT_EQ(Parse(json)->head, LunaHead::kSentence);
}

struct Refused {
  const char* key;
  nlohmann::json value;
};

TEST(LunaConfigTest, RefusesByName) {
  const Refused cases[] = {
      {"model_type", "longformer"},
      {"head", "masked_lm"},
      {"vocab_size", 0},
      {"hidden_size", 30},
      {"num_heads", 0},
      {"num_heads", 5},
      {"num_proj_heads", 3},
      {"num_layers", 0},
      {"proj_len", 0},
      {"max_positions", 0},
      {"norm_position", "both"},
      {"activation", "swish"},
      {"position_type", "rotary"},
      {"layer_norm_gain", "exp"},
      {"pooling", "max"},
      {"pad_token_id", 25},
      {"tie_kv", "yes"},
      {"classifier_in_dim", 33},
      {"classifier_out_dim", 0},
      {"layer_norm_eps", -1.0},
      {"quant_noise", 0.1},
      {"strip_cls_for_proj_pooling", true},
  };
  for (const Refused& refused : cases) {
    nlohmann::json json = Classifier();
    json[refused.key] = refused.value;
    const auto config = Parse(json);
    ASSERT_FALSE(config.ok()) << refused.key << " = " << refused.value;
    const std::string key = std::string(refused.key) == "hidden_size" ? "num_heads" : refused.key;
    EXPECT_NE(config.status().message().find(key), std::string::npos) << config.status();
  }
  nlohmann::json pre = Classifier();
  pre["norm_position"] = "pre";
  EXPECT_TRUE(Parse(pre).ok());
  pre["embedding_layer_norm"] = true;
  EXPECT_NE(Parse(pre).status().message().find("embedding_layer_norm"), std::string::npos);
}

}  // namespace
}  // namespace longview::models
