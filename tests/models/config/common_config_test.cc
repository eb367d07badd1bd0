#include <nlohmann/json.hpp>

#include "models/config/common_config.h"

#include <string>

#include "gtest/gtest.h"

namespace longview::models {
namespace {

absl::StatusOr<CommonConfig> Parse(const std::string& members) {
  const nlohmann::json value = nlohmann::json::parse("{" + members + "}");
  return ParseCommonConfig(JsonReader(value, "config.json"));
}

const std::string kArchitecture = R"("architectures": ["LongformerModel"])";

TEST(CommonConfig, Defaults) {
  const auto config = Parse(kArchitecture);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->architecture, "LongformerModel");
  EXPECT_EQ(config->labels, (std::vector<std::string>{"LABEL_0", "LABEL_1"}));
  EXPECT_EQ(config->problem_type, ProblemType::kSingleLabel);
  EXPECT_EQ(config->stored_dtype, "");
  EXPECT_TRUE(config->eos_token_ids.empty());
  EXPECT_EQ(config->pad_token_id, std::nullopt);
}

TEST(CommonConfig, ReadsEverything) {
  const auto config =
      Parse(kArchitecture + R"(, "model_type": "longformer", "torch_dtype": "float16",
      "id2label": {"0": "no", "2": 7, "1": "yes"}, "num_labels": 2,
      "problem_type": "multi_label_classification", "pad_token_id": 1, "bos_token_id": 0,
      "eos_token_id": [2, 5], "sep_token_id": 2)");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->labels, (std::vector<std::string>{"no", "yes", "7"}));
  EXPECT_EQ(config->problem_type, ProblemType::kMultiLabel);
  EXPECT_EQ(config->stored_dtype, "float16");
  EXPECT_EQ(config->eos_token_ids, (std::vector<int32_t>{2, 5}));
  EXPECT_EQ(config->pad_token_id, 1);
  EXPECT_EQ(config->sep_token_id, 2);
}

TEST(CommonConfig, TheClassMayBeLeftToTheWeights) {
  for (const char* members : {"", R"("architectures": [])", R"("architectures": null)"}) {
    const auto config = Parse(members);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->architecture, "");
  }
}

TEST(CommonConfig, OneLabelIsASigmoidUnlessTheFileSaysOtherwise) {
  EXPECT_EQ(Parse(kArchitecture + R"(, "num_labels": 1)")->problem_type, ProblemType::kMultiLabel);
  EXPECT_EQ(
      Parse(kArchitecture + R"(, "num_labels": 1, "problem_type": "regression")")->problem_type,
      ProblemType::kRegression);
}

TEST(CommonConfig, RefusesByName) {
  const struct {
    std::string members, part;
  } cases[] = {
      {R"("architectures": "LongformerModel")", "a list of strings"},
      {kArchitecture + R"(, "id2label": {"0": "a", "2": "b"})", "\"id2label\""},
      {kArchitecture + R"(, "id2label": {"0": true})", "\"id2label\""},
      {kArchitecture + R"(, "id2label": ["a"])", "\"id2label\""},
      {kArchitecture + R"(, "num_labels": 0)", "\"num_labels\""},
      {kArchitecture + R"(, "problem_type": "ranking")", "found \"ranking\""},
      {kArchitecture + R"(, "pad_token_id": "x")", "\"pad_token_id\""},
  };
  for (const auto& c : cases) {
    const auto config = Parse(c.members);
    ASSERT_FALSE(config.ok()) << c.members;
    EXPECT_NE(config.status().message().find(c.part), std::string::npos) << config.status();
  }
}

}  // namespace
}  // namespace longview::models
