// Fixtures of generation: cases of tests/golden that need no model.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "models/checkpoint/checkpoint.h"
#include "models/config/json_reader.h"
#include "nlohmann/json.hpp"

namespace longview::models {

inline std::string GoldenFile(const std::string& path) {
  const char* root = std::getenv("LONGVIEW_GOLDEN");
  return std::string(root != nullptr ? root : LONGVIEW_GOLDEN_DIR) + "/" + path;
}

// Aborts the test binary if the file is missing or broken.
inline nlohmann::json GoldenJson(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(GoldenFile(path), size_t{64} << 20);
  if (!text.ok()) ADD_FAILURE() << text.status();
  return nlohmann::json::parse(*text);
}

class GoldenTensors {
 public:
  explicit GoldenTensors(const std::string& path) {
    absl::StatusOr<Checkpoint> file = Checkpoint::Open(GoldenFile(path));
    if (!file.ok()) ADD_FAILURE() << file.status();
    file_ = *std::move(file);
  }

  bool Has(const std::string& name) const { return file_.Find(name) != nullptr; }

  template <typename T>
  std::vector<T> Values(const std::string& name) const {
    const TensorView* tensor = file_.Find(name);
    if (tensor == nullptr) {
      ADD_FAILURE() << name << " is missing";
      return {};
    }
    std::vector<T> values(static_cast<size_t>(tensor->elements()));
    std::memcpy(values.data(), tensor->data, values.size() * sizeof(T));
    return values;
  }

 private:
  Checkpoint file_;
};

}  // namespace longview::models
