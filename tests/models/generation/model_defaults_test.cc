// Generation settings of model directories: which file counts, and what is refused.
#include <gtest/gtest.h>

#include "models/generation/options/model_defaults.h"
#include "tests/support/temp_directory.h"

namespace longview::models {
namespace {

using nlohmann::json;

class ModelDefaults : public ::testing::Test {
 protected:
  absl::StatusOr<GenerationOptions> Read() {
    ModelDirectory directory;
    directory.path = temp_.path();
    directory.config_path = directory.path + "/config.json";
    directory.config = config_;
    directory.serving.generation = serving_;
    return ReadGenerationDefaults(directory);
  }
  void WriteHuggingFace(const json& settings) {
    temp_.Write("generation_config.json", settings.dump());
  }
  std::string Refusal() { return std::string(Read().status().message()); }

  ::longview::testing::TempDirectory temp_;
  json config_ = json::object();
  json serving_ = json::object();
};

TEST_F(ModelDefaults, NothingSaysNothing) {
  const auto options = Read();
  ASSERT_TRUE(options.ok());
  EXPECT_FALSE(options->num_beams.has_value());
  EXPECT_TRUE(options->others.empty());
}

TEST_F(ModelDefaults, LegacyKeysCountWithoutTheNewFile) {
  config_ = {{"num_beams", 4},
             {"max_length", 142},
             {"early_stopping", true},
             {"hidden", 3},
             {"eos_token_id", 2}};
  auto options = Read();
  EXPECT_EQ(options->num_beams, 4);
  EXPECT_EQ(options->others.at("max_length"), "142");
  EXPECT_EQ(options->early_stopping, true);
  // config.json's ids are the family's to read.
  EXPECT_EQ(options->others.count("eos_token_id"), 0u);
  WriteHuggingFace({{"length_penalty", 2.0}});
  options = Read();
  EXPECT_FALSE(options->num_beams.has_value());
  EXPECT_EQ(options->length_penalty, 2.0);
}

TEST_F(ModelDefaults, OursComesFirst) {
  WriteHuggingFace({{"num_beams", 2}, {"top_k", 7}, {"max_length", 30}, {"eos_token_id", {1, 2}}});
  serving_ = {{"num_beams", 5}, {"max_new_tokens", 9}, {"stop", {"\n"}}};
  const auto options = Read();
  EXPECT_EQ(options->num_beams, 5);
  EXPECT_EQ(options->top_k, 7);
  EXPECT_EQ(options->max_new_tokens, 9);
  EXPECT_EQ(options->others.count("max_length"), 0u);
  EXPECT_EQ(options->others.at("eos_token_id"), "[1,2]");
  EXPECT_EQ(options->stop, std::vector<std::string>{"\n"});
}

TEST_F(ModelDefaults, WhatHuggingFaceIgnoresIsIgnoredInItsFile) {
  WriteHuggingFace({{"transformers_version", "5.0"},
                    {"use_cache", true},
                    {"top_k", nullptr},
                    {"num_beam_groups", 1},
                    {"guidance_scale", nullptr}});
  EXPECT_TRUE(Read().ok());
  serving_ = {{"use_cache", true}};
  EXPECT_NE(Refusal().find("longview.json: generation: use_cache: no such generation option"),
            std::string::npos)
      << Refusal();
}

TEST_F(ModelDefaults, SettingsThatAreNotServedAreRefused) {
  WriteHuggingFace({{"num_beam_groups", 2}});
  EXPECT_NE(Refusal().find("generation_config.json: \"num_beam_groups\": 2 is not served"),
            std::string::npos)
      << Refusal();
  WriteHuggingFace({{"temperature", "hot"}});
  EXPECT_NE(Refusal().find("generation_config.json: temperature: expected a number"),
            std::string::npos)
      << Refusal();
}

}  // namespace
}  // namespace longview::models
