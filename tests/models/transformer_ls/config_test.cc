// config.json and weights: what is read, and what is refused by name.
#include "models/transformer_ls/config.h"

#include <gtest/gtest.h>

#include <string>

#include "models/text/byte_codec.h"
#include "tests/models/config/parse_with.h"
#include "tests/models/golden/edited_model.h"
#include "tests/models/golden/golden_case.h"

namespace longview::models {
namespace {

using nlohmann::json;

json Paper() {
  return {{"model_type", "transformer_ls"},
          {"architectures", {"TransformerLSForCausalLM"}},
          {"vocab_size", 256},
          {"d_model", 64},
          {"n_head", 4},
          {"d_inner", 128},
          {"n_layer", 2},
          {"window_len", 32},
          {"chunk_size", 16},
          {"chunk_rank", 1},
          {"pre_ln", true},
          {"use_gelu", true}};
}

json Blocks() {
  json config = Paper();
  config["schedule"] = "blocks";
  config["block_len"] = 32;
  config["mem_len"] = 64;
  return config;
}

constexpr auto Parse = ParseWith<ParseLsLmConfig>;

TEST(LsLmConfig, ReadsThePublishedShape) {
  json config = Paper();
  config["_name_or_path"] = "x";
  config["transformers_version"] = "5";
  config["clamp_len"] = -1;
  config["block_len"] = nullptr;
  const auto read = Parse(config);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->schedule, LsSchedule::kPaper);
  EXPECT_FALSE(read->zero_memory);
  EXPECT_EQ(read->head_dim(), 16);
  EXPECT_EQ(read->clamp_distance, 0);
  EXPECT_EQ(read->prefill_alignment(), 64);
  config["chunk_size"] = 12;
  EXPECT_EQ(Parse(config)->prefill_alignment(), 192);
}

TEST(LsLmConfig, BlocksHaveZeroMemoryUnlessToldOtherwise) {
  json config = Blocks();
  EXPECT_TRUE(Parse(config)->zero_memory);
  config["zero_memory"] = "none";
  EXPECT_FALSE(Parse(config)->zero_memory);
}

struct Refusal {
  const char* key;
  json value;
  bool blocks = false;
};

TEST(LsLmConfig, RefusesByName) {
  const Refusal refusals[] = {
      {"model_type", "bert"},
      {"d_model", 63},
      {"n_head", 3},
      {"d_model", 1024},  // Heads of 256.
      {"window_len", 15},
      {"chunk_rank", 0},
      {"pre_ln", nullptr},
      {"use_gelu", nullptr},
      {"clamp_len", -2},
      {"schedule", "stream"},
      {"block_len", 32},
      {"zero_memory", "reference"},
      {"inv_freq", "fp16"},
      {"bos_token_id", 256},
      {"eos_token_id", json::array({1, 300})},
      {"dropout", 0.1},
      {"block_len", nullptr, true},
      {"block_len", 24, true},
      {"mem_len", 40, true},
      {"mem_len", 16, true},
      {"zero_memory", "some", true},
  };
  for (const Refusal& refusal : refusals) {
    json config = refusal.blocks ? Blocks() : Paper();
    config[refusal.key] = refusal.value;
    const auto read = Parse(config);
    ASSERT_FALSE(read.ok()) << refusal.key << " " << refusal.value;
    const bool head = std::string(refusal.key) == "d_model" && refusal.value == 1024;
    EXPECT_NE(read.status().message().find(head ? "n_head" : refusal.key), std::string::npos)
        << read.status();
  }
}

class LsLmFiles : public ::testing::Test {
 protected:
  LsLmFiles() : model_(GoldenCase("blocks_B8_M64_w16", "transformer_ls_lm")) {}
  EditedModel model_;
};

TEST_F(LsLmFiles, TheOutputWeightMayBeThereOrNot) {
  ASSERT_TRUE(model_.tensors.contains("decoder.model.out_emb.weight"));
  EXPECT_TRUE(model_.Load().ok()) << model_.Load().status();
  model_.tensors.erase("decoder.model.out_emb.weight");
  EXPECT_TRUE(model_.Load().ok());
}

TEST_F(LsLmFiles, TiedWeightsThatDifferAreRefused) {
  model_.tensors["decoder.model.out_emb.weight"].values[5] += 1.0f;
  EXPECT_NE(model_.Load().status().message().find("tied"), std::string::npos);
}

TEST_F(LsLmFiles, MissingAndUnknownTensorsAreRefusedByName) {
  const EditedTensor norm = model_.tensors["decoder.model.layers.1.norm2.weight"];
  model_.tensors.erase("decoder.model.layers.1.norm2.weight");
  EXPECT_NE(model_.Load().status().message().find("layers.1.norm2.weight"), std::string::npos);
  model_.tensors["decoder.model.layers.1.norm2.weight"] = norm;
  // A bias that the configuration says is not there.
  model_.tensors["decoder.model.layers.0.attn.proj_out.bias"] = norm;
  EXPECT_NE(model_.Load().status().message().find("proj_out.bias"), std::string::npos);
}

TEST_F(LsLmFiles, TheTokenizerIsChecked) {
  model_.config["tokenizer"] = {{"type", "bytes"}, {"offset", 1}};
  EXPECT_NE(model_.Load().status().message().find("offset"), std::string::npos);
}

}  // namespace
}  // namespace longview::models
