#include "models/config/serving_config.h"

#include <filesystem>
#include <limits>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/config/json_reader.h"

namespace longview::models {
namespace {

using nlohmann::json;

std::string Join(const std::string& directory, const char* file) {
  return (std::filesystem::path(directory) / file).string();
}

// Exactly one of the file's `pooling_mode_*` flags may be on.
absl::StatusOr<std::string> ReadPoolingMode(const json& file, const std::string& path) {
  constexpr std::pair<std::string_view, std::string_view> kModes[] = {
      {"pooling_mode_cls_token", "cls"}, {"pooling_mode_mean_tokens", "mean"}};
  constexpr std::string_view kPrefix = "pooling_mode_";
  JsonReader reader(file, path);
  std::vector<std::string> on;
  for (const auto& [key, value] : file.items()) {
    if (key.starts_with(kPrefix) && reader.Bool(key)) on.push_back(key);
  }
  if (!reader.status().ok()) return reader.status();
  for (const auto& [key, name] : kModes) {
    if (on.size() == 1 && on[0] == key) return std::string(name);
  }
  std::string found;
  for (const std::string& key : on) absl::StrAppend(&found, found.empty() ? "" : ", ", key);
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": expected pooling_mode_cls_token or pooling_mode_mean_tokens alone, found ",
      found.empty() ? "none" : found));
}

// sentence-transformers names modules by their Python class.
absl::StatusOr<bool> ReadNormalizeModule(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path, size_t{1} << 20);
  if (absl::IsNotFound(text.status())) return false;
  if (!text.ok()) return text.status();
  absl::StatusOr<json> modules = ParseJson(*text, path);
  if (!modules.ok()) return modules.status();
  if (!modules->is_array()) return absl::InvalidArgumentError(path + ": expected a list");
  bool normalize = false;
  for (const json& module : *modules) {
    JsonReader reader(module, path);
    const std::string type = reader.String("type");
    if (!reader.status().ok()) return reader.status();
    const std::string name = type.substr(type.rfind('.') + 1);
    normalize = normalize || name == "Normalize";
    if (name != "Transformer" && name != "Pooling" && name != "Normalize") {
      reader.Refuse("type", "a Transformer, Pooling or Normalize module");
      return reader.status();
    }
  }
  return normalize;
}

}  // namespace

absl::StatusOr<ServingConfig> ReadServingConfig(const std::string& directory) {
  const std::string path = Join(directory, "longview.json");
  absl::StatusOr<json> file = ReadJsonFile(path);
  if (absl::IsNotFound(file.status())) return ServingConfig();
  if (!file.ok()) return file.status();

  JsonReader reader(*file, path);
  reader.RefuseUnknown({"dtype", "max_tokens", "pooling", "normalize", "labels", "generation",
                        "score_threshold", "warmup"});
  ServingConfig config;
  if (reader.Has("dtype")) config.dtype = reader.Choice("dtype", {"fp32", "bf16", "fp16"});
  if (reader.Has("max_tokens")) config.max_tokens = static_cast<int>(reader.Int("max_tokens", 1));
  if (reader.Has("pooling")) config.pooling = reader.Choice("pooling", {"cls", "mean", "pooler"});
  if (reader.Has("normalize")) config.normalize = reader.Bool("normalize");
  if (reader.Has("labels")) {
    config.labels = reader.StringList("labels");
    if (config.labels->empty()) reader.Refuse("labels", "at least one name");
  }
  if (reader.Has("generation")) {
    reader.Object("generation");
    config.generation = (*file)["generation"];
  }
  if (reader.Has("score_threshold")) {
    config.score_threshold = reader.Number("score_threshold");
    if (*config.score_threshold < 0 || *config.score_threshold > 1) {
      reader.Refuse("score_threshold", "a number in [0, 1]");
    }
  }
  config.warmup = reader.BoolOr("warmup", true);
  if (!reader.status().ok()) return reader.status();
  return config;
}

absl::StatusOr<EmbeddingConfig> ReadEmbeddingConfig(const std::string& directory,
                                                    const ServingConfig& serving) {
  EmbeddingConfig config;
  const std::string pooling_path = Join(directory, "1_Pooling/config.json");
  if (serving.pooling) {
    config.pooling = *serving.pooling;
  } else if (absl::StatusOr<json> file = ReadJsonFile(pooling_path); file.ok()) {
    absl::StatusOr<std::string> mode = ReadPoolingMode(*file, pooling_path);
    if (!mode.ok()) return mode.status();
    config.pooling = *std::move(mode);
  } else if (!absl::IsNotFound(file.status())) {
    return file.status();
  }
  absl::StatusOr<bool> normalize = ReadNormalizeModule(Join(directory, "modules.json"));
  if (!normalize.ok()) return normalize.status();
  config.normalize = serving.normalize.value_or(*normalize);
  return config;
}

}  // namespace longview::models
