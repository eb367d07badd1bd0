#include "models/config/common_config.h"

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

using nlohmann::json;

constexpr int64_t kMaxLabels = 1 << 20;

std::vector<std::string> ReadLabels(JsonReader& reader) {
  std::vector<std::string> labels;
  const json* names = reader.Find("id2label");
  if (names == nullptr) {
    const int64_t count = reader.IntOr("num_labels", 2, 1, kMaxLabels);
    for (int64_t id = 0; id < count; ++id) labels.push_back(absl::StrCat("LABEL_", id));
    return labels;
  }
  const std::string expected = "an object with a name for each id from 0";
  if (!names->is_object() || names->empty()) reader.Refuse("id2label", expected);
  for (size_t id = 0; names->is_object() && id < names->size(); ++id) {
    const auto name = names->find(absl::StrCat(id));
    // Some files name classes by numbers.
    if (name == names->end() || !(name->is_string() || name->is_number())) {
      reader.Refuse("id2label", expected);
      break;
    }
    labels.push_back(name->is_string() ? name->get<std::string>() : name->dump());
  }
  return labels;
}

ProblemType ReadProblemType(JsonReader& reader, size_t labels) {
  const std::string type =
      reader.ChoiceOr("problem_type", "",
                      {"single_label_classification", "multi_label_classification", "regression"});
  if (type == "regression") return ProblemType::kRegression;
  // One label without a type is a score in [0, 1].
  const bool multi = type == "multi_label_classification" || (type.empty() && labels == 1);
  return multi ? ProblemType::kMultiLabel : ProblemType::kSingleLabel;
}

std::optional<int32_t> ReadId(JsonReader& reader, const char* key) {
  if (!reader.Has(key)) return std::nullopt;
  return static_cast<int32_t>(reader.Int(key, -1));
}

}  // namespace

absl::StatusOr<CommonConfig> ParseCommonConfig(JsonReader reader) {
  CommonConfig config;
  std::vector<std::string> architectures;
  if (reader.Has("architectures")) architectures = reader.StringList("architectures");
  if (!reader.status().ok()) return reader.status();
  if (!architectures.empty()) config.architecture = architectures[0];
  config.model_type = reader.StringOr("model_type", "");
  config.labels = ReadLabels(reader);
  config.problem_type = ReadProblemType(reader, config.labels.size());
  config.stored_dtype = reader.StringOr("dtype", reader.StringOr("torch_dtype", ""));
  const json* eos = reader.Find("eos_token_id");
  if (eos != nullptr && eos->is_array()) {
    for (int64_t id : reader.IntList("eos_token_id")) {
      config.eos_token_ids.push_back(static_cast<int32_t>(id));
    }
  } else if (const std::optional<int32_t> id = ReadId(reader, "eos_token_id")) {
    config.eos_token_ids.push_back(*id);
  }
  config.pad_token_id = ReadId(reader, "pad_token_id");
  config.bos_token_id = ReadId(reader, "bos_token_id");
  config.sep_token_id = ReadId(reader, "sep_token_id");
  if (!reader.status().ok()) return reader.status();
  return config;
}

absl::StatusOr<CommonConfig> ReadCommonConfig(const std::string& directory) {
  const std::string path = (std::filesystem::path(directory) / "config.json").string();
  ASSIGN_OR_RETURN(json file, ReadJsonFile(path));
  return ParseCommonConfig(JsonReader(file, path));
}

}  // namespace longview::models
