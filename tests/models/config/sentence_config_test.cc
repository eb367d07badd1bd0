#include "models/config/sentence_config.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "models/config/transformer_module.h"
#include "tests/support/temp_directory.h"

namespace longview::models {
namespace {

constexpr char kNewTypes[] = "sentence_transformers.sentence_transformer.modules.";

class SentenceConfigTest : public ::testing::Test {
 protected:
  SentenceConfig Read(nlohmann::json config = nlohmann::json::object()) {
    config_ = std::move(config);
    auto sentence = ReadSentenceConfig(directory_.path(), JsonReader(config_, "config.json"));
    EXPECT_TRUE(sentence.ok()) << sentence.status();
    return sentence.ok() ? *std::move(sentence) : SentenceConfig();
  }
  // modules.json with a Transformer and modules of these classes, each in a folder of its number.
  void WriteModules(const std::vector<std::string>& classes) {
    nlohmann::json list = {
        {{"type", std::string(kNewTypes) + "transformer.Transformer"}, {"path", ""}}};
    for (size_t i = 0; i < classes.size(); ++i) {
      list.push_back({{"type", kNewTypes + classes[i]}, {"path", std::to_string(i + 1)}});
    }
    directory_.Write("modules.json", list.dump());
  }
  void ExpectRefused(const std::string& part) {
    const SentenceConfig sentence = Read();
    ASSERT_FALSE(sentence.modules.ok());
    EXPECT_NE(sentence.modules.status().message().find(part), std::string::npos)
        << sentence.modules.status();
  }

  testing::TempDirectory directory_;
  nlohmann::json config_;
};

TEST_F(SentenceConfigTest, NoFilesMeanNothing) {
  const SentenceConfig sentence = Read();
  EXPECT_FALSE(sentence.modules->has_value());
  EXPECT_TRUE(sentence.prompts.empty());
  EXPECT_EQ(*sentence.score_activation, ScoreActivation::kSigmoid);
}

TEST_F(SentenceConfigTest, PoolingInBothForms) {
  using enum PoolMode;
  const struct {
    const char* text;
    std::vector<PoolMode> modes;
  } cases[] = {
      {R"({"embedding_dimension": 8, "pooling_mode": "mean", "include_prompt": true})", {kMean}},
      {R"({"pooling_mode": ["mean", "cls"], "pooling_mode_max_tokens": true})", {kMean, kCls}},
      {R"({"word_embedding_dimension": 8, "pooling_mode_cls_token": true,
           "pooling_mode_mean_tokens": false})",
       {kCls}},
      {R"({"pooling_mode_lasttoken": true, "pooling_mode_weightedmean_tokens": true,
           "pooling_mode_mean_sqrt_len_tokens": true, "pooling_mode_mean_tokens": true,
           "pooling_mode_max_tokens": true, "pooling_mode_cls_token": true})",
       {kCls, kMax, kMean, kMeanSqrt, kWeightedMean, kLastToken}},
      {R"({"pooling_mode_cls_token": false})", {kMean}},
  };
  for (const auto& c : cases) {
    // Beside the model by hand, and by modules.json.
    directory_.Write("1_Pooling/config.json", c.text);
    EXPECT_EQ((*Read().modules)->pooling, c.modes) << c.text;
  }
  directory_.Write("1/config.json", R"({"pooling_mode": "max", "include_prompt": false})");
  WriteModules({"pooling.Pooling"});
  const SentenceConfig sentence = Read();
  EXPECT_EQ((*sentence.modules)->pooling, (std::vector<PoolMode>{kMax}));
  EXPECT_FALSE((*sentence.modules)->include_prompt);
  EXPECT_FALSE((*sentence.modules)->normalizes());
}

TEST_F(SentenceConfigTest, OldModulesAndAnAbsentFolderOfNormalize) {
  directory_.Write("1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true})");
  directory_.Write("modules.json",
                   R"([{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
                       {"idx": 1, "path": "1_Pooling",
                        "type": "sentence_transformers.models.Pooling"},
                       {"idx": 2, "path": "2_Normalize",
                        "type": "sentence_transformers.models.Normalize"}])");
  EXPECT_TRUE((*Read().modules)->normalizes());
}

TEST_F(SentenceConfigTest, DenseOverTokensWithoutPoolingIsMultiVector) {
  WriteModules({"dense.Dense", "mask.MultiVectorMask", "normalize.Normalize"});
  directory_.Write("1/config.json",
                   R"({"in_features": 8, "out_features": 4, "bias": false,
                       "activation_function": "torch.nn.modules.linear.Identity",
                       "module_input_name": "token_embeddings"})");
  directory_.Write("3/config.json", R"({"module_input_name": "token_embeddings"})");
  const SentenceConfig sentence = Read();
  EXPECT_TRUE((*sentence.modules)->multi_vector);
  EXPECT_EQ((*sentence.modules)->width_of_answers(8), 4);
  EXPECT_EQ((*sentence.modules)->steps.at(0).activation, DenseActivation::kIdentity);
}

TEST_F(SentenceConfigTest, WidthsFollowPoolingAndDense) {
  directory_.Write("1/config.json", R"({"pooling_mode": ["mean", "max"]})");
  WriteModules({"pooling.Pooling"});
  EXPECT_EQ((*Read().modules)->width_of_answers(8), 16);
  directory_.Write("2/config.json", R"({"in_features": 16, "out_features": 5})");
  WriteModules({"pooling.Pooling", "dense.Dense"});
  const SentenceConfig sentence = Read();
  EXPECT_EQ((*sentence.modules)->width_of_answers(8), 5);
  EXPECT_EQ((*sentence.modules)->steps.at(0).activation, DenseActivation::kTanh);
}

TEST_F(SentenceConfigTest, WhatIsNotServedIsRefusedByName) {
  directory_.Write("1/config.json", R"({"pooling_mode": "attention"})");
  WriteModules({"pooling.Pooling"});
  ExpectRefused("attention");
  directory_.Write("1/config.json", R"({"pooling_mode_some_tokens": true})");
  ExpectRefused("pooling_mode_some_tokens");
  directory_.Write("1/config.json", R"({"pooling_mode": "mean"})");
  WriteModules({"pooling.Pooling", "lstm.LSTM"});
  ExpectRefused("lstm.LSTM");
  WriteModules({"pooling.Pooling", "dense.Dense"});
  directory_.Write("2/config.json",
                   R"({"in_features": 8, "out_features": 4,
                       "activation_function": "torch.nn.modules.activation.Mish"})");
  ExpectRefused("Mish");
  directory_.Write("2/config.json",
                   R"({"in_features": 8, "out_features": 4, "use_residual": true})");
  ExpectRefused("use_residual");
  directory_.Write("2/config.json", R"({"in_features": 8, "out_features": 4,
                                        "module_input_name": "token_embeddings"})");
  ExpectRefused("before Pooling");
  directory_.Write("modules.json", R"([{"type": "x.Transformer", "path": ""},
                                       {"type": "x.Pooling", "path": "../1"}])");
  ExpectRefused("path");
  directory_.Write("modules.json", "{}");
  ExpectRefused("expected a list");
}

TEST_F(SentenceConfigTest, PromptsAndLimits) {
  directory_.Write("config_sentence_transformers.json",
                   R"({"prompts": {"query": "Q: ", "document": ""}, "default_prompt_name": "query",
                       "truncate_dim": 12})");
  directory_.Write("sentence_bert_config.json",
                   R"({"max_seq_length": 77, "do_lower_case": false})");
  const SentenceConfig sentence = Read();
  EXPECT_EQ(sentence.prompts.at("query"), "Q: ");
  EXPECT_EQ(sentence.default_prompt, "query");
  EXPECT_EQ(sentence.dimensions, 12);
  EXPECT_EQ(sentence.limits.max_tokens, 77);
  directory_.Write("config_sentence_transformers.json", R"({"default_prompt_name": "nobody"})");
  ExpectRefused("default_prompt_name");
}

TEST_F(SentenceConfigTest, LimitsOfTextsUnderEveryName) {
  directory_.Write("sentence_xlnet_config.json", R"({"max_seq_length": 1})");
  for (const char* type : {"xlm-roberta", "albert", "camembert", "distilbert", "roberta", "bert"}) {
    const int limit = static_cast<int>(std::string(type).size());
    directory_.Write(absl::StrCat("sentence_", type, "_config.json"),
                     absl::StrCat(R"({"do_lower_case": true, "max_seq_length": )", limit, "}"));
    EXPECT_EQ(Read().limits.max_tokens, limit) << type;  // The first in the library's order.
    EXPECT_TRUE(Read().limits.lower_case);
  }
  directory_.Write("sentence_bert_config.json", R"({"do_lower_case": false})");
  EXPECT_FALSE(Read().limits.lower_case);
  EXPECT_FALSE(Read().limits.max_tokens.has_value());
  directory_.Write("sentence_bert_config.json", R"({"max_seq_length": 0})");
  EXPECT_FALSE(ReadSentenceConfig(directory_.path(), JsonReader(config_, "config.json")).ok());
}

TEST_F(SentenceConfigTest, LimitsLieWithTheTransformer) {
  directory_.Write("modules.json", R"([{"type": "x.Transformer", "path": "0_Transformer"},
                                       {"type": "x.Pooling", "path": "1_Pooling"}])");
  directory_.Write("1_Pooling/config.json", "{}");
  directory_.Write("sentence_bert_config.json", R"({"max_seq_length": 9})");
  directory_.Write("0_Transformer/sentence_roberta_config.json", R"({"max_seq_length": 8})");
  EXPECT_EQ(FindTransformer(directory_.path()), directory_.Path("0_Transformer"));
  EXPECT_EQ(Read().limits.max_tokens, 8);
}

TEST_F(SentenceConfigTest, ScoreActivationsInTheirOrder) {
  const std::string torch = "torch.nn.modules.";
  nlohmann::json config = {{"sbert_ce_default_activation_function", torch + "activation.Tanh"}};
  EXPECT_EQ(*Read(config).score_activation, ScoreActivation::kTanh);
  config["sentence_transformers"] = {{"activation_fn", torch + "activation.Sigmoid"}};
  EXPECT_EQ(*Read(config).score_activation, ScoreActivation::kSigmoid);
  directory_.Write("config_sentence_transformers.json",
                   nlohmann::json{{"activation_fn", torch + "linear.Identity"}}.dump());
  EXPECT_EQ(*Read(config).score_activation, ScoreActivation::kIdentity);
  directory_.Write("config_sentence_transformers.json",
                   nlohmann::json{{"activation_fn", torch + "activation.Mish"}}.dump());
  const SentenceConfig refused = Read(config);
  EXPECT_NE(refused.score_activation.status().message().find("Mish"), std::string::npos);
  EXPECT_TRUE(refused.modules.ok());
}

}  // namespace
}  // namespace longview::models
