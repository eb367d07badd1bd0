// config.json: what is read, and a table of what is refused by name.
#include "models/longformer/config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/models/config/parse_with.h"

namespace longview::models {
namespace {

nlohmann::json Published() {
  return nlohmann::json::parse(R"({
    "architectures": ["LongformerForSequenceClassification"], "model_type": "longformer",
    "attention_window": [512, 512], "num_hidden_layers": 2, "hidden_size": 96,
    "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100,
    "max_position_embeddings": 4098, "type_vocab_size": 1, "pad_token_id": 1, "sep_token_id": 2,
    "layer_norm_eps": 1e-05, "hidden_act": "gelu", "attention_mode": "longformer",
    "ignore_attention_mask": false, "gradient_checkpointing": false})");
}

constexpr auto Parse = ParseWith<ParseLongformerConfig>;

TEST(LongformerConfigTest, ReadsAPublishedFile) {
  const auto config = Parse(Published());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->head, EncoderHead::kSequenceClassification);
  EXPECT_EQ(config->window, std::vector<int>({256, 256}));
  EXPECT_EQ(config->max_tokens(), 4096);
  EXPECT_EQ(config->head_dim(), 24);
  EXPECT_EQ(config->labels, std::vector<std::string>({"LABEL_0", "LABEL_1"}));
}

TEST(LongformerConfigTest, AbsentKeysTakeTheClassDefaults) {
  const auto config = Parse({{"architectures", {"LongformerModel"}}, {"model_type", "longformer"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->vocab, 30522);
  EXPECT_EQ(config->width, 768);
  EXPECT_EQ(config->window, std::vector<int>(12, 256));
  EXPECT_EQ(config->types, 2);
  EXPECT_FLOAT_EQ(config->norm_eps, 1e-12f);
}

TEST(LongformerConfigTest, DilationByLayerAndByHead) {
  nlohmann::json json = Published();
  json["attention_dilation"] = {1, {1, 2, 3, 4}};
  const auto config = Parse(json);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->dilation[0].empty());
  EXPECT_EQ(config->dilation[1], std::vector<int>({1, 2, 3, 4}));
}

TEST(LongformerConfigTest, OneLabelWithoutATypeIsAScore) {
  nlohmann::json json = Published();
  json["num_labels"] = 1;
  EXPECT_EQ(Parse(json)->problem_type, ProblemType::kMultiLabel);
  json["problem_type"] = "regression";
  EXPECT_EQ(Parse(json)->problem_type, ProblemType::kRegression);
}

struct Refusal {
  const char* key;
  const char* value;  // JSON
  const char* part;   // Part of the message, besides the key.
};

constexpr Refusal kRefusals[] = {
    {"architectures", R"(["LongformerForCausalLM"])", "LongformerForCausalLM"},
    {"model_type", R"("bert")", "longformer"},
    {"attention_window", "[512]", "list of 2"},
    {"attention_window", "[511, 512]", "even"},
    {"attention_window", "0", "found 0"},
    {"attention_window", R"("512")", "512"},
    {"attention_dilation", "[1]", "list of 2"},
    {"attention_dilation", "[1, [1, 2]]", "list of 4"},
    {"attention_dilation", "[1, 0]", "at least 1"},
    {"hidden_act", R"("mish")", "gelu"},
    {"hidden_size", "97", "multiple of num_attention_heads"},
    {"hidden_size", "-1", "found -1"},
    {"num_hidden_layers", "0", "found 0"},
    {"num_attention_heads", "0", "found 0"},
    {"max_position_embeddings", "2", "at least pad_token_id + 2"},
    {"pad_token_id", "100", "below vocab_size"},
    {"layer_norm_eps", R"("small")", "number"},
    {"position_embedding_type", R"("relative_key")", "absolute"},
    {"tie_word_embeddings", "3", "true or false"},
    {"problem_type", R"("ranking")", "regression"},
};

TEST(LongformerConfigTest, RefusesByName) {
  for (const Refusal& refusal : kRefusals) {
    nlohmann::json json = Published();
    json[refusal.key] = nlohmann::json::parse(refusal.value);
    const auto config = Parse(json);
    ASSERT_FALSE(config.ok()) << refusal.key << " = " << refusal.value;
    const std::string message(config.status().message());
    EXPECT_NE(message.find("config.json"), std::string::npos) << message;
    EXPECT_NE(message.find(refusal.key), std::string::npos) << message;
    EXPECT_NE(message.find(refusal.part), std::string::npos) << message;
  }
}

TEST(LongformerConfigTest, RefusesAllenaisOwnFilesWhoseWindowsAreOneSided) {
  nlohmann::json json = Published();
  json["attention_mode"] = "sliding_chunks";
  EXPECT_TRUE(Parse(json).ok()) << "leftover key beside HuggingFace's model_type";
  json["model_type"] = "roberta";
  EXPECT_NE(Parse(json).status().message().find("one-sided"), std::string::npos);
  json.erase("model_type");
  EXPECT_NE(Parse(json).status().message().find("one-sided"), std::string::npos);
}

}  // namespace
}  // namespace longview::models
