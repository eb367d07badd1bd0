// How a model directory wants to be served: longview.json (ours, optional).
// Thread-safe: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace longview::models {

// longview.json; unset = the file does not say. Unknown keys are errors.
struct ServingConfig {
  std::optional<std::string> dtype;  // fp32, bf16, fp16, int8
  // Linears that an int8 model leaves in its compute type; set by `longview quantize`.
  std::optional<std::vector<std::string>> int8_keep;
  std::optional<int> max_tokens;       // At least 1.
  std::optional<std::string> pooling;  // cls, mean, pooler
  std::optional<bool> normalize;
  std::optional<bool> truncate;                          // Whether texts that are too long are cut.
  std::optional<std::vector<std::string>> labels;        // By id, instead of id2label.
  nlohmann::json generation = nlohmann::json::object();  // Defaults, by HuggingFace's names.
  std::optional<double> score_threshold;                 // In [0, 1].
  bool warmup = true;
};

// Reads longview.json of the directory, or defaults if there is none.
absl::StatusOr<ServingConfig> ReadServingConfig(const std::string& directory);

}  // namespace longview::models
