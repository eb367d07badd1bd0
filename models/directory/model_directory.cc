#include "models/directory/model_directory.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/config/json_reader.h"
#include "models/config/transformer_module.h"
#include "models/directory/architecture.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

// longview.json may rename labels, not change how many there are; where config.json does not count
// them, the head's weights do.
absl::Status ApplyLabels(ModelDirectory& directory) {
  if (!directory.serving.labels) return absl::OkStatus();
  if (HeadCountsLabels(directory)) {
    directory.common.labels = *directory.serving.labels;
    return absl::OkStatus();
  }
  const size_t found = directory.serving.labels->size();
  const size_t expected = directory.common.labels.size();
  if (found != expected) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory.root, "/longview.json: \"labels\": expected ", expected,
                     " names as in config.json, found ", found));
  }
  directory.common.labels = *directory.serving.labels;
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadConfiguration(ModelDirectory& directory) {
  std::error_code error;
  if (!std::filesystem::is_directory(directory.path, error)) {
    return absl::NotFoundError(absl::StrCat(directory.path, ": no such directory"));
  }
  directory.root = directory.path;
  directory.path = FindTransformer(directory.root);
  directory.config_path = (std::filesystem::path(directory.path) / "config.json").string();
  ASSIGN_OR_RETURN(nlohmann::json config, ReadJsonFile(directory.config_path));
  directory.config = std::move(config);

  ASSIGN_OR_RETURN(auto common,
                   ParseCommonConfig(JsonReader(directory.config, directory.config_path)));
  directory.common = std::move(common);

  ASSIGN_OR_RETURN(auto serving, ReadServingConfig(directory.root));
  directory.serving = std::move(serving);

  ASSIGN_OR_RETURN(
      auto sentence,
      ReadSentenceConfig(directory.root, JsonReader(directory.config, directory.config_path)));
  directory.sentence = std::move(sentence);
  return ApplyLabels(directory);
}

absl::Status OpenWeights(ModelDirectory& directory) {
  ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(directory.path));
  directory.checkpoint = std::move(checkpoint);
  return absl::OkStatus();
}

absl::Status OpenTokenizer(ModelDirectory& directory) {
  absl::StatusOr<Tokenizer> tokenizer =
      Tokenizer::Load(directory.path, directory.sentence.limits.lower_case);
  if (absl::IsNotFound(tokenizer.status())) {
    ASSIGN_OR_RETURN(std::optional<LraBytes> bytes, ReadLraBytes(directory.path));
    if (bytes.has_value() && directory.sentence.limits.lower_case) {
      return absl::InvalidArgumentError(
          absl::StrCat(directory.path,
                       ": \"do_lower_case\": expected false, as byte tokens have "
                       "no case, found true"));
    }
    directory.bytes = std::move(bytes);
    return absl::OkStatus();
  }
  if (!tokenizer.ok()) return tokenizer.status();
  directory.tokenizer = *std::move(tokenizer);
  return absl::OkStatus();
}

absl::StatusOr<ModelDirectory> OpenModelDirectory(const std::string& path) {
  ModelDirectory directory;
  directory.path = path;
  for (auto* step : {ReadConfiguration, OpenWeights, CompleteConfiguration, OpenTokenizer}) {
    RETURN_IF_ERROR(step(directory));
  }
  return directory;
}

}  // namespace longview::models
