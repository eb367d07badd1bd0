#include "models/generation/options/model_defaults.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "models/config/json_reader.h"
#include "models/generation/options/settings.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

using nlohmann::json;

// Generation keys that HuggingFace still reads from config.json.
constexpr std::array<std::string_view, 22> kLegacyKeys = {"max_length",
                                                          "min_length",
                                                          "do_sample",
                                                          "early_stopping",
                                                          "num_beams",
                                                          "temperature",
                                                          "top_k",
                                                          "top_p",
                                                          "typical_p",
                                                          "repetition_penalty",
                                                          "length_penalty",
                                                          "no_repeat_ngram_size",
                                                          "encoder_no_repeat_ngram_size",
                                                          "bad_words_ids",
                                                          "num_return_sequences",
                                                          "forced_bos_token_id",
                                                          "forced_eos_token_id",
                                                          "remove_invalid_values",
                                                          "exponential_decay_length_penalty",
                                                          "suppress_tokens",
                                                          "begin_suppress_tokens",
                                                          "renormalize_logits"};

// Settings of generation_config.json that change the output and are not served, with the value
// that changes nothing.
struct Unserved {
  std::string_view name;
  double neutral;
};
constexpr std::array<Unserved, 8> kUnserved = {{{"num_beam_groups", 1},
                                                {"diversity_penalty", 0},
                                                {"penalty_alpha", 0},
                                                {"guidance_scale", 1},
                                                {"top_h", 1},
                                                {"force_words_ids", 0},
                                                {"constraints", 0},
                                                {"watermarking_config", 0}}};

absl::Status Set(GenerationOptions& options, const std::string& origin, const std::string& key,
                 const json& value) {
  const absl::Status status = SetOption(options, key, value.dump());
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat(origin, ": ", std::string(status.message())));
}

absl::Status CheckServed(const json& file, const std::string& origin) {
  for (const Unserved& setting : kUnserved) {
    const auto found = file.find(setting.name);
    if (found == file.end() || found->is_null() || *found == setting.neutral) continue;
    return absl::InvalidArgumentError(absl::StrCat(origin, ": \"", std::string(setting.name),
                                                   "\": ", ShortJson(*found), " is not served"));
  }
  return absl::OkStatus();
}

// The defaults that HuggingFace would take.
absl::StatusOr<GenerationOptions> ReadHuggingFace(const ModelDirectory& directory) {
  GenerationOptions options;
  const std::string path =
      (std::filesystem::path(directory.path) / "generation_config.json").string();
  const absl::StatusOr<json> file = ReadJsonFile(path);
  if (!file.ok() && !absl::IsNotFound(file.status())) return file.status();
  const json& source = file.ok() ? *file : directory.config;
  const std::string& origin = file.ok() ? path : directory.config_path;
  RETURN_IF_ERROR(CheckServed(source, origin));
  for (const auto& [key, value] : source.items()) {
    const bool counts =
        file.ok() ? IsGenerationOption(key)
                  : std::find(kLegacyKeys.begin(), kLegacyKeys.end(), key) != kLegacyKeys.end();
    if (!counts) continue;
    RETURN_IF_ERROR(Set(options, origin, key, value));
  }
  return options;
}

}  // namespace

absl::StatusOr<GenerationOptions> ReadGenerationDefaults(const ModelDirectory& directory) {
  GenerationOptions ours;
  for (const auto& [key, value] : directory.serving.generation.items()) {
    RETURN_IF_ERROR(Set(ours, directory.path + "/longview.json: generation", key, value));
  }
  ASSIGN_OR_RETURN(const GenerationOptions theirs, ReadHuggingFace(directory));
  return MergeOptions(std::move(ours), theirs);
}

}  // namespace longview::models
