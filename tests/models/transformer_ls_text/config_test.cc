// config.json: what is read, and a table of what is refused by name.
#include "models/transformer_ls_text/config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/models/config/parse_with.h"

namespace longview::models {
namespace {

nlohmann::json Published() {
  return nlohmann::json::parse(R"({
    "architectures": ["TransformerLSForSequenceClassification"], "model_type": "transformer_ls",
    "vocab_size": 512, "d": 64, "heads": 2, "layers": 2, "ff": 128, "max_seq_len": 4096,
    "window": 8, "rank": 32, "num_labels": 2})");
}

constexpr auto Parse = ParseWith<ParseLsTextConfig>;

TEST(LsTextConfigTest, ReadsThePublishedSizesAndDefaults) {
  const auto config = Parse(Published());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->head, EncoderHead::kSequenceClassification);
  EXPECT_EQ(config->cls, LsClass::kLastLayer);
  EXPECT_EQ(config->columns(), 64);
  EXPECT_EQ(config->head_dim(), 32);
  EXPECT_FLOAT_EQ(config->norm_eps, 1e-5f);
  EXPECT_FALSE(config->HasClass(0));
  EXPECT_TRUE(config->HasClass(1));
}

TEST(LsTextConfigTest, NegativeWindowsAreNone) {
  nlohmann::json json = Published();
  json["window"] = -1;
  EXPECT_EQ(Parse(json)->window, 0);
}

TEST(LsTextConfigTest, TokensMustSeeSomething) {
  nlohmann::json json = Published();
  json["window"] = 0;
  json["rank"] = 0;
  for (const char* mode : {"last_layer", "first_token", "none"}) {
    json["cls_mode"] = mode;
    EXPECT_FALSE(Parse(json).ok()) << mode;
  }
  json["cls_mode"] = "all_layers";
  EXPECT_TRUE(Parse(json).ok());
  json["cls_mode"] = "last_layer";
  json["layers"] = 1;
  EXPECT_TRUE(Parse(json).ok());
}

struct Refused {
  const char* key;
  nlohmann::json value;
};

TEST(LsTextConfigTest, RefusesByName) {
  const Refused cases[] = {
      {"model_type", "longformer"},
      {"vocab_size", 1},
      {"vocab_size", "many"},
      {"d", 63},
      {"d", 0},
      {"heads", 0},
      {"heads", 3},
      {"layers", 0},
      {"ff", -4},
      {"max_seq_len", 0},
      {"window", 1.5},
      {"rank", -1},
      {"cls_mode", "cls"},
      {"pool_divisor", "mean"},
      {"pool_divisor", "max_seq_len"},
      {"pad_token_id", 1},
      {"ln_eps", -1.0},
      {"tied_weights", 1},
      {"conv_kernel_size", 3},
  };
  for (const Refused& refused : cases) {
    nlohmann::json json = Published();
    json[refused.key] = refused.value;
    const auto config = Parse(json);
    ASSERT_FALSE(config.ok()) << refused.key << " = " << refused.value;
    EXPECT_NE(config.status().message().find(refused.key), std::string::npos) << config.status();
  }
  nlohmann::json wide = Published();
  wide["d"] = 512;
  EXPECT_NE(Parse(wide).status().message().find("128"), std::string::npos);
}

TEST(LsTextConfigTest, RequiredKeysAreNamed) {
  for (const char* key : {"vocab_size", "d", "heads", "layers", "ff", "max_seq_len", "window",
                          "rank", "model_type"}) {
    nlohmann::json json = Published();
    json.erase(key);
    const auto config = Parse(json);
    ASSERT_FALSE(config.ok()) << key;
    EXPECT_NE(config.status().message().find(key), std::string::npos) << config.status();
  }
}

}  // namespace
}  // namespace longview::models
