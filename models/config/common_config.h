// The parts of config.json that every HuggingFace architecture shares.
// Thread-safe: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/config/json_reader.h"
#include "models/model.h"

namespace longview::models {

struct CommonConfig {
  std::string architecture;         // architectures[0]: chooses family and head.
  std::string model_type;           // "" if absent.
  std::vector<std::string> labels;  // By id; id2label, else LABEL_<i> for num_labels (2).
  ProblemType problem_type = ProblemType::kSingleLabel;
  std::string stored_dtype;  // "float32", "bfloat16", "float16"; "" if absent.
  // Several models end at any of a list of eos tokens.
  std::vector<int32_t> eos_token_ids;
  std::optional<int32_t> pad_token_id, bos_token_id, sep_token_id;
};

// INVALID_ARGUMENT names the key. `reader` is one on the whole of config.json.
absl::StatusOr<CommonConfig> ParseCommonConfig(JsonReader reader);

// Reads config.json of a model directory. NOT_FOUND without the file.
absl::StatusOr<CommonConfig> ReadCommonConfig(const std::string& directory);

}  // namespace longview::models
