#include "models/quantize/settings_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "models/config/serving_config.h"

namespace longview::models {
namespace {

using ::testing::ElementsAre;

class SettingsFileTest : public ::testing::Test {
 protected:
  SettingsFileTest() : folder_(::testing::TempDir() + "/quantize_settings") {
    std::filesystem::create_directories(folder_);
  }
  ~SettingsFileTest() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/longview.json"; }
  void Put(const std::string& text) const { std::ofstream(path()) << text; }
  std::string Get() const {
    std::ostringstream text;
    text << std::ifstream(path()).rdbuf();
    return text.str();
  }

  const std::string folder_;
};

TEST_F(SettingsFileTest, NamesAreSortedAndReadAgain) {
  const auto text = Int8Settings(folder_, {"b.out", "a.out"});
  ASSERT_TRUE(text.ok()) << text.status();
  ASSERT_TRUE(WriteSettings(folder_, *text).ok());
  const auto read = ReadServingConfig(folder_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read->dtype, "int8");
  EXPECT_THAT(*read->int8_keep, ElementsAre("a.out", "b.out"));
  EXPECT_EQ(*Int8Settings(folder_, {"a.out", "b.out"}), *text) << "the same again";
}

TEST_F(SettingsFileTest, OtherKeysStayInTheirOrder) {
  Put("{\"truncate\": true, \"dtype\": \"fp32\", \"max_tokens\": 512, \"generation\": {\"top_p\": "
      "0.9}}");
  EXPECT_EQ(*Int8Settings(folder_, {}),
            "{\n  \"truncate\": true,\n  \"dtype\": \"int8\",\n  \"max_tokens\": 512,\n"
            "  \"generation\": {\n    \"top_p\": 0.9\n  },\n  \"int8_keep\": []\n}\n");
}

TEST_F(SettingsFileTest, WhatTheLoaderRefusesIsRefused) {
  for (const char* text : {"{\"dtype\": \"int4\"}", "{", "[]", "{\"unknown\": 1}"}) {
    Put(text);
    EXPECT_FALSE(Int8Settings(folder_, {}).ok()) << text;
  }
}

TEST_F(SettingsFileTest, NothingElseIsLeftBehindAndTheModeStays) {
  Put("{}");
  ASSERT_EQ(chmod(path().c_str(), 0640), 0);
  ASSERT_TRUE(WriteSettings(folder_, "{\"dtype\": \"int8\"}\n").ok());
  EXPECT_EQ(Get(), "{\"dtype\": \"int8\"}\n");
  struct stat after = {};
  ASSERT_EQ(stat(path().c_str(), &after), 0);
  EXPECT_EQ(after.st_mode & 0777, 0640u);
  const std::filesystem::directory_iterator files(folder_);
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(SettingsFileTest, AFolderThatCannotBeWrittenIsNamed) {
  EXPECT_TRUE(CheckWritable(folder_).ok());
  EXPECT_EQ(CheckWritable(folder_ + "/absent").code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(WriteSettings(folder_ + "/absent", "{}").code(), absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace longview::models
