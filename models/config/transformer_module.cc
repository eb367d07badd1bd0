#include "models/config/transformer_module.h"

#include <array>
#include <cstddef>
#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/config/json_reader.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

using nlohmann::json;

constexpr std::array<const char*, 7> kTypes = {"bert",   "roberta",     "distilbert", "camembert",
                                               "albert", "xlm-roberta", "xlnet"};

}  // namespace

absl::StatusOr<json> ReadModuleList(const std::string& directory) {
  const std::string path = directory + "/modules.json";
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, size_t{1} << 20));
  absl::StatusOr<json> list = ParseJson(text, path);
  if (list.ok() && (!list->is_array() || list->empty())) {
    return absl::InvalidArgumentError(path + ": expected a list of modules");
  }
  return list;
}

bool IsInside(const std::string& path) {
  const std::filesystem::path folder(path);
  if (folder.is_absolute()) return false;
  for (const auto& part : folder) {
    if (part == "..") return false;
  }
  return true;
}

std::string FindTransformer(const std::string& directory) {
  const absl::StatusOr<json> list = ReadModuleList(directory);
  if (!list.ok()) return directory;
  JsonReader reader(list->front(), "modules.json");
  const std::string type = reader.StringOr("type", "");
  const std::string path = reader.StringOr("path", "");
  if (!reader.status().ok() || path.empty() || !IsInside(path)) return directory;
  if (type.substr(type.rfind('.') + 1) != "Transformer") return directory;
  const auto folder = (std::filesystem::path(directory) / path).lexically_normal();
  return folder.has_filename() ? folder.string() : folder.parent_path().string();
}

absl::StatusOr<TextLimits> ReadTextLimits(const std::string& folder) {
  TextLimits limits;
  for (const char* type : kTypes) {
    const std::string path = absl::StrCat(folder, "/sentence_", type, "_config.json");
    const absl::StatusOr<json> file = ReadJsonFile(path);
    if (absl::IsNotFound(file.status())) continue;
    if (!file.ok()) return file.status();
    JsonReader reader(*file, path);
    if (reader.Has("max_seq_length")) {
      limits.max_tokens = static_cast<int>(reader.Int("max_seq_length", 1));
    }
    limits.lower_case = reader.BoolOr("do_lower_case", false);
    if (!reader.status().ok()) return reader.status();
    break;
  }
  return limits;
}

}  // namespace longview::models
