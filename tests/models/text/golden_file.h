// Reads tests/golden/tokenizers.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace longview::models {

inline std::filesystem::path TokenizerGolden(const std::string& name) {
  const char* root = std::getenv("LONGVIEW_GOLDEN");
  return std::filesystem::path(root ? root : LONGVIEW_GOLDEN_DIR) / "tokenizers" / name;
}

inline nlohmann::json ReadGolden(const std::string& name) {
  std::ifstream in(TokenizerGolden(name) / "expected.json");
  EXPECT_TRUE(in) << name;
  return nlohmann::json::parse(in);
}

}  // namespace longview::models
