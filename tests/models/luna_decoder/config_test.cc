// config.json of language models: what is read, what is refused by name; checkpoints that do not
// fit.
#include "models/luna_decoder/config.h"

#include <gtest/gtest.h>

#include <functional>

#include "models/model.h"
#include "tests/models/config/parse_with.h"
#include "tests/models/golden/edited_model.h"

namespace longview::models {
namespace {

nlohmann::json Causal() {
  return nlohmann::json::parse(R"({
    "architectures": ["LunaForCausalLM"], "model_type": "luna", "vocab_size": 44,
    "hidden_size": 32, "ffn_size": 64, "num_layers": 2, "num_heads": 4, "proj_len": 16,
    "max_positions": 64, "bos_token_id": 2, "eos_token_id": 2})");
}

constexpr auto Parse = ParseWith<ParseLunaDecoderConfig>;

TEST(LunaDecoderConfigTest, Defaults) {
  const auto config = Parse(Causal());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->tied_kv);
  EXPECT_EQ(config->parts(), 3);
  EXPECT_EQ(config->norms, NormPlace::kPost);
  EXPECT_EQ(config->positions, LunaPositions::kSinusoidal);
  EXPECT_EQ(config->activation, Activation::kRelu);
  EXPECT_EQ(config->phi, kernels::OuterActivation::kSoftplusLn2);
  EXPECT_EQ(config->position_rows(), 66);
}

// fairseq's dictionaries end texts with id 2; null says that nothing does.
TEST(LunaDecoderConfigTest, TheEndIsTwoUnlessConfigSaysOtherwise) {
  const auto ends = [](const nlohmann::json& json) { return Parse(json).value().ends; };
  nlohmann::json json = Causal();
  json.erase("eos_token_id");
  EXPECT_EQ(ends(json), std::vector<int32_t>{2});
  json["eos_token_id"] = {3, 5};
  EXPECT_EQ(ends(json), (std::vector<int32_t>{3, 5}));
  json["eos_token_id"] = nullptr;
  EXPECT_EQ(ends(json), std::vector<int32_t>());
}

struct Refused {
  const char* key;
  nlohmann::json value;
  const char* named = nullptr;  // If another key is.
};

TEST(LunaDecoderConfigTest, RefusesByName) {
  const Refused cases[] = {
      {"model_type", "led"},
      {"head", "translation"},
      {"vocab_size", 1},
      {"hidden_size", 30, "num_heads"},
      {"num_heads", 0},
      {"num_layers", 0},
      {"proj_len", 0},
      {"max_positions", 0},
      {"norm_position", "both"},
      {"activation", "swish"},
      {"position_type", "rotary"},
      {"layer_norm_gain", "exp"},
      {"causal_activation", "softmax"},
      {"pad_token_id", 44},
      {"bos_token_id", 44},
      {"eos_token_id", 44},
      {"tie_kv", 1},
      {"layer_norm_eps", -1.0},
      {"tie_layer_weights", true},
      {"quant_noise", 0.1},
  };
  for (const Refused& refused : cases) {
    nlohmann::json json = Causal();
    json[refused.key] = refused.value;
    const auto config = Parse(json);
    ASSERT_FALSE(config.ok()) << refused.key << " = " << refused.value;
    const char* key = refused.named != nullptr ? refused.named : refused.key;
    EXPECT_NE(config.status().message().find(key), std::string::npos) << config.status();
  }
  nlohmann::json pre = Causal();
  pre["norm_position"] = "pre";
  EXPECT_TRUE(Parse(pre).ok());
  pre["embedding_layer_norm"] = true;
  EXPECT_NE(Parse(pre).status().message().find("embedding_layer_norm"), std::string::npos);
}

}  // namespace
}  // namespace longview::models
