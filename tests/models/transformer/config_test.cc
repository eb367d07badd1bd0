// config.json of ModernBERT and of XLM-RoBERTa: both forms of keys, and what is refused by name.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "models/config/json_reader.h"
#include "models/modernbert/config.h"
#include "models/roberta/config.h"
#include "models/status_macros.h"
#include "models/transformer/rotary.h"
#include "nlohmann/json.hpp"

namespace longview::models {
namespace {

using nlohmann::json;

json NewForm() {
  return {{"model_type", "modernbert"},
          {"architectures", {"ModernBertModel"}},
          {"hidden_size", 64},
          {"num_attention_heads", 2},
          {"num_hidden_layers", 4},
          {"layer_types",
           {"sliding_attention", "full_attention", "sliding_attention", "full_attention"}},
          {"local_attention", 15},
          {"rope_parameters",
           {{"full_attention", {{"rope_type", "default"}, {"rope_theta", 80000.0}}},
            {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 20000.0}}}}}};
}

json OldForm() {
  json config = NewForm();
  config.erase("layer_types");
  config.erase("rope_parameters");
  config["global_attn_every_n_layers"] = 3;
  config["global_rope_theta"] = 80000.0;
  config["local_rope_theta"] = 20000.0;
  return config;
}

absl::StatusOr<TransformerConfig> Parse(const json& config,
                                        std::optional<int> max_tokens = std::nullopt) {
  ASSIGN_OR_RETURN(const auto common, ParseCommonConfig(JsonReader(config, "config.json")));
  return ParseModernBertConfig(config, common, "config.json", max_tokens);
}

std::vector<int> Windows(const TransformerConfig& config) {
  std::vector<int> windows;
  for (const auto& layer : config.layers) windows.push_back(layer.window);
  return windows;
}

double ThetaOf(const TransformerConfig& config, int layer) {
  return config.rotary.at(static_cast<size_t>(config.layers[layer].rotary)).theta;
}

TEST(ModernBertConfigTest, BothForms) {
  const auto fresh = Parse(NewForm()), old = Parse(OldForm());
  ASSERT_TRUE(fresh.ok()) << fresh.status();
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_EQ(Windows(*fresh), (std::vector<int>{7, -1, 7, -1}));
  EXPECT_EQ(Windows(*old), (std::vector<int>{-1, 7, 7, -1}));
  EXPECT_EQ(ThetaOf(*fresh, 0), 20000);
  EXPECT_EQ(ThetaOf(*fresh, 1), 80000);
  EXPECT_EQ(ThetaOf(*old, 0), 80000);
  EXPECT_EQ(ThetaOf(*old, 1), 20000);
  EXPECT_EQ(fresh->max_tokens, 8192);
  EXPECT_EQ(Parse(NewForm(), 20000)->max_tokens, 20000);
  EXPECT_FALSE(fresh->norm_bias);
  EXPECT_FALSE(fresh->pools_mean);
}

TEST(ModernBertConfigTest, HalfOfTheKeys) {
  json half = OldForm();
  half["rope_parameters"] = {{"sliding_attention", {{"rope_type", "linear"}, {"factor", 2.0}}}};
  const auto config = Parse(half);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(ThetaOf(*config, 0), 80000);
  EXPECT_EQ(ThetaOf(*config, 1), 20000);
  EXPECT_EQ(config->rotary.at(1).type, RotaryConfig::Type::kLinear);
  json null_theta = OldForm();
  null_theta["local_rope_theta"] = nullptr;
  EXPECT_EQ(ThetaOf(*Parse(null_theta), 1), 80000);
  EXPECT_EQ(Parse(null_theta)->rotary.size(), 1u);
  json none = OldForm();
  none.erase("local_rope_theta");
  none.erase("global_rope_theta");
  EXPECT_EQ(ThetaOf(*Parse(none), 0), 160000);
  EXPECT_EQ(ThetaOf(*Parse(none), 1), 10000);
  json alias = NewForm();
  alias.erase("local_attention");
  alias["sliding_window"] = 9;
  EXPECT_EQ(Windows(*Parse(alias)).front(), 9);
}

TEST(ModernBertConfigTest, RefusesByName) {
  const struct {
    std::function<void(json&)> edit;
    const char* part;
  } cases[] = {
      {[](json& c) { c["layer_types"][0] = "chunked_attention"; }, "chunked_attention"},
      {[](json& c) { c["layer_types"].push_back("full_attention"); }, "layer_types"},
      {[](json& c) { c["classifier_pooling"] = "max"; }, "classifier_pooling"},
      {[](json& c) {
         c["rope_parameters"] = {{"rope_type", "default"}};
       },
       "rope_parameters"},
      {[](json& c) { c["rope_parameters"]["full_attention"] = nullptr; }, "rope_parameters"},
      {[](json& c) { c["rope_theta"] = 5.0e4; }, "rope_theta"},
      {[](json& c) { c["rope_parameters"]["full_attention"]["rope_type"] = "dynamic"; }, "dynamic"},
      {[](json& c) {
         c["rope_scaling"] = {{"type", "yarn"}, {"factor", 4.0}};
       },
       "rope_scaling"},
      {[](json& c) { c["sliding_window"] = 9; }, "sliding_window"},
      {[](json& c) { c["hidden_activation"] = "snake"; }, "snake"},
      {[](json& c) { c["num_attention_heads"] = 64; }, "hidden_size"},
  };
  for (const auto& c : cases) {
    json config = NewForm();
    c.edit(config);
    const auto parsed = Parse(config);
    ASSERT_FALSE(parsed.ok()) << c.part;
    EXPECT_NE(parsed.status().message().find(c.part), std::string::npos) << parsed.status();
  }
}

// Against the formula in double precision: fast pairs keep their frequency, slow ones are divided.
TEST(RotaryTest, YarnBlendsFrequencies) {
  RotaryConfig plain, yarn;
  plain.theta = yarn.theta = 10000;
  yarn.type = RotaryConfig::Type::kYarn;
  yarn.factor = 4;
  yarn.original_positions = 2048;
  const std::vector<float> before = RotaryFrequencies(plain, 64);
  const std::vector<float> after = RotaryFrequencies(yarn, 64);
  ASSERT_EQ(after.size(), 32u);
  EXPECT_EQ(after.front(), before.front());
  EXPECT_NEAR(after.back(), before.back() / 4, 1e-9);
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_NEAR(before[i], std::pow(10000.0, -2.0 * static_cast<double>(i) / 64), 1e-7);
    EXPECT_LE(after[i], before[i]);
    EXPECT_GE(after[i], before[i] / 4.0001f);
  }
}

// The angle is a product of two fp32 numbers, rounded to fp32.
TEST(RotaryTest, AnglesAreRoundedProducts) {
  RotaryConfig config;
  config.theta = 160000;
  const std::vector<float> frequencies = RotaryFrequencies(config, 8);
  const std::vector<float> angles = RotaryAngles(config, 8192, 8);
  for (const int position : {0, 1, 777, 8191}) {
    for (size_t i = 0; i < 4; ++i) {
      const float angle = static_cast<float>(position) * frequencies[i];
      const float* row = angles.data() + position * 8;
      EXPECT_EQ(row[i], static_cast<float>(std::cos(double{angle})));
      EXPECT_EQ(row[4 + i], static_cast<float>(std::sin(double{angle})));
    }
  }
}

TEST(RobertaConfigTest, LimitsAndRefusals) {
  json config = {{"model_type", "xlm-roberta"},
                 {"architectures", {"XLMRobertaForSequenceClassification"}},
                 {"max_position_embeddings", 514},
                 {"pad_token_id", 1},
                 {"type_vocab_size", 1}};
  const auto parse = [&] {
    const auto common = ParseCommonConfig(JsonReader(config, "config.json"));
    return ParseRobertaConfig(config, *common, "config.json");
  };
  ASSERT_TRUE(parse().ok()) << parse().status();
  EXPECT_EQ(parse()->max_tokens, 512);
  EXPECT_EQ(parse()->head_activation, Activation::kTanh);
  config["position_embedding_type"] = "relative_key";
  EXPECT_NE(parse().status().message().find("relative_key"), std::string::npos);
  config.erase("position_embedding_type");
  config["is_decoder"] = true;
  EXPECT_NE(parse().status().message().find("is_decoder"), std::string::npos);
}

TEST(BertConfigTest, PositionsBeginAtZero) {
  json config = {{"model_type", "bert"}, {"architectures", {"BertForMaskedLM"}},
                 {"hidden_size", 64},    {"num_attention_heads", 2},
                 {"hidden_act", "relu"}, {"max_position_embeddings", 40}};
  const auto parse = [&] {
    const auto common = ParseCommonConfig(JsonReader(config, "config.json"));
    return ParseBertConfig(config, *common, "config.json");
  };
  const auto bert = parse();
  ASSERT_TRUE(bert.ok()) << bert.status();
  EXPECT_EQ(bert->max_tokens, 40);
  EXPECT_EQ(bert->pad, 0);
  EXPECT_EQ(bert->types, 2);
  EXPECT_EQ(bert->head_activation, Activation::kRelu);
  config["architectures"] = {"BertForNextSentencePrediction"};
  EXPECT_NE(parse().status().message().find("BertForMaskedLM"), std::string::npos);
  config["architectures"] = {"BertModel"};
  config["model_type"] = "roberta";
  EXPECT_NE(parse().status().message().find("found \"roberta\""), std::string::npos);
}

}  // namespace
}  // namespace longview::models
