#include "models/config/serving_config.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/support/temp_directory.h"

namespace longview::models {
namespace {

class ServingConfigTest : public ::testing::Test {
 protected:
  absl::StatusOr<ServingConfig> Serving(const std::string& text) {
    directory_.Write("longview.json", text);
    return ReadServingConfig(directory_.path());
  }

  testing::TempDirectory directory_;
};

TEST_F(ServingConfigTest, NoFileMeansDefaults) {
  const auto config = ReadServingConfig(directory_.path());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->dtype, std::nullopt);
  EXPECT_EQ(config->max_tokens, std::nullopt);
  EXPECT_TRUE(config->warmup);
  EXPECT_TRUE(config->generation.empty());
}

TEST_F(ServingConfigTest, ReadsEveryKey) {
  const auto config = Serving(R"({"dtype": "bf16", "max_tokens": 1000, "pooling": "cls",
      "normalize": true, "labels": ["a", "b"], "generation": {"top_k": 5},
      "score_threshold": 0.3, "warmup": false})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->dtype, "bf16");
  EXPECT_EQ(config->max_tokens, 1000);
  EXPECT_EQ(config->pooling, "cls");
  EXPECT_EQ(config->normalize, true);
  EXPECT_EQ(config->labels, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(config->generation["top_k"], 5);
  EXPECT_EQ(config->score_threshold, 0.3);
  EXPECT_FALSE(config->warmup);
}

TEST_F(ServingConfigTest, RefusesByName) {
  const struct {
    const char* text;
    const char* part;
  } cases[] = {
      {R"({"max_token": 5})", "unknown key \"max_token\""},
      {R"({"dtype": "int4"})", "found \"int4\""},
      {R"({"max_tokens": 0})", "found 0"},
      {R"({"max_tokens": 10.5})", "found 10.5"},
      {R"({"pooling": "max"})", "found \"max\""},
      {R"({"normalize": 1})", "\"normalize\""},
      {R"({"labels": []})", "\"labels\""},
      {R"({"labels": ["a", 1]})", "\"labels\""},
      {R"({"generation": 5})", "\"generation\""},
      {R"({"score_threshold": 1.5})", "found 1.5"},
      {R"({"warmup": "no"})", "\"warmup\""},
      {R"([])", "expected a JSON object"},
      {R"({"warmup": true, "warmup": true})", "twice"},
  };
  for (const auto& c : cases) {
    const auto config = Serving(c.text);
    ASSERT_FALSE(config.ok()) << c.text;
    EXPECT_NE(config.status().message().find("longview.json"), std::string::npos);
    EXPECT_NE(config.status().message().find(c.part), std::string::npos) << config.status();
  }
}

}  // namespace
}  // namespace longview::models
