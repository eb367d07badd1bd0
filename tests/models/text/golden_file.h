// Reads tests/golden: tokenizers, and single files of other families.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace longview::models {

inline std::filesystem::path GoldenPath(const std::string& relative) {
  const char* root = std::getenv("LONGVIEW_GOLDEN");
  return std::filesystem::path(root ? root : LONGVIEW_GOLDEN_DIR) / relative;
}

inline nlohmann::json ReadGoldenJson(const std::string& relative) {
  std::ifstream in(GoldenPath(relative));
  EXPECT_TRUE(in) << relative;
  return nlohmann::json::parse(in);
}

inline std::filesystem::path TokenizerGolden(const std::string& name) {
  return GoldenPath("tokenizers") / name;
}

inline nlohmann::json ReadGolden(const std::string& name) {
  return ReadGoldenJson("tokenizers/" + name + "/expected.json");
}

}  // namespace longview::models
