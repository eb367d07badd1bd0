#include "models/config/serving_config.h"

#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/config/json_reader.h"

namespace longview::models {
namespace {

using nlohmann::json;

std::string Join(const std::string& directory, const char* file) {
  return (std::filesystem::path(directory) / file).string();
}

}  // namespace

absl::StatusOr<ServingConfig> ReadServingConfig(const std::string& directory) {
  const std::string path = Join(directory, "longview.json");
  absl::StatusOr<json> file = ReadJsonFile(path);
  if (absl::IsNotFound(file.status())) return ServingConfig();
  if (!file.ok()) return file.status();

  JsonReader reader(*file, path);
  // models/directory/architecture.cc reads the task.
  reader.RefuseUnknown({"task", "dtype", "max_tokens", "pooling", "normalize", "truncate", "labels",
                        "generation", "score_threshold", "warmup", "int8_keep"});
  ServingConfig config;
  if (reader.Has("dtype")) config.dtype = reader.Choice("dtype", {"fp32", "bf16", "fp16", "int8"});
  if (reader.Has("int8_keep")) config.int8_keep = reader.StringList("int8_keep");
  if (reader.Has("max_tokens")) config.max_tokens = static_cast<int>(reader.Int("max_tokens", 1));
  if (reader.Has("pooling")) config.pooling = reader.Choice("pooling", {"cls", "mean", "pooler"});
  if (reader.Has("normalize")) config.normalize = reader.Bool("normalize");
  if (reader.Has("truncate")) config.truncate = reader.Bool("truncate");
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

}  // namespace longview::models
