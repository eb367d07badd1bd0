// Reads tests/golden: tokenizers, and single files of other families.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace longview::models {

// A fixture of LONGVIEW_GOLDEN, or of tests/golden where that has none of the name.
inline std::filesystem::path GoldenPath(const std::string& relative) {
  const char* root = std::getenv("LONGVIEW_GOLDEN");
  const std::filesystem::path given =
      std::filesystem::path(root ? root : LONGVIEW_GOLDEN_DIR) / relative;
  return std::filesystem::exists(given) ? given
                                        : std::filesystem::path(LONGVIEW_GOLDEN_DIR) / relative;
}

inline nlohmann::json ReadGoldenJson(const std::string& relative) {
  std::ifstream in(GoldenPath(relative));
  EXPECT_TRUE(in) << relative;
  return nlohmann::json::parse(in);
}

inline std::filesystem::path TokenizerGolden(const std::string& name) {
  return GoldenPath("tokenizers/" + name);
}

inline nlohmann::json ReadGolden(const std::string& name) {
  return ReadGoldenJson("tokenizers/" + name + "/expected.json");
}

}  // namespace longview::models
