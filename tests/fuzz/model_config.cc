// The JSON files of a model directory. The first byte picks one: config.json, longview.json,
// 1_Pooling/config.json, modules.json. What is accepted must be fit for use.
#include <nlohmann/json.hpp>
#include <string>

#include "models/config/common_config.h"
#include "models/config/json_reader.h"
#include "models/config/sentence_config.h"
#include "models/config/serving_config.h"
#include "models/cst/config.h"
#include "models/longformer/config.h"
#include "models/transformer_ls_text/config.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/temp_directory.h"

namespace longview::models {
namespace {

void ReadConfig(std::string_view text) {
  const auto json = ParseJson(text, "config.json");
  if (!json.ok() || !json->is_object()) return;
  const auto common = ParseCommonConfig(JsonReader(*json, "config.json"));
  if (!common.ok()) return;
  FUZZ_PROMISE(!common->architecture.empty() || !common->labels.empty());
  const auto config = ParseLongformerConfig(*json, *common, "config.json");
  if (!config.ok()) return;
  FUZZ_PROMISE(config->width > 0 && config->heads > 0 && config->width % config->heads == 0);
  FUZZ_PROMISE(config->layers == static_cast<int>(config->window.size()));
  FUZZ_PROMISE(config->layers == static_cast<int>(config->dilation.size()));
  FUZZ_PROMISE(config->max_tokens() >= 1 && config->pad < config->vocab);
  for (const int window : config->window) FUZZ_PROMISE(window >= 1);
  for (const std::vector<int>& heads : config->dilation) {
    FUZZ_PROMISE(heads.empty() || static_cast<int>(heads.size()) == config->heads);
    for (const int dilation : heads) FUZZ_PROMISE(dilation >= 1);
  }
}

void ReadLsText(std::string_view text) {
  const auto json = ParseJson(text, "config.json");
  if (!json.ok() || !json->is_object()) return;
  const auto common = ParseCommonConfig(JsonReader(*json, "config.json"));
  if (!common.ok()) return;
  const auto config = ParseLsTextConfig(*json, *common, "config.json");
  if (!config.ok()) return;
  FUZZ_PROMISE(config->width > 0 && config->heads > 0 && config->width % config->heads == 0);
  FUZZ_PROMISE(config->vocab >= 2 && config->layers >= 1 && config->intermediate >= 1);
  FUZZ_PROMISE(config->window >= 0 && config->rank >= 0);
  FUZZ_PROMISE(config->positions > config->first_position());
}

void ReadCst(std::string_view text) {
  const auto json = ParseJson(text, "config.json");
  if (!json.ok() || !json->is_object()) return;
  const auto common = ParseCommonConfig(JsonReader(*json, "config.json"));
  if (!common.ok()) return;
  const auto config = ParseCstConfig(*json, *common, "config.json");
  if (!config.ok()) return;
  FUZZ_PROMISE(config->width > 0 && config->heads > 0 && config->width % config->heads == 0);
  FUZZ_PROMISE(config->vocab >= 1 && config->layers >= 1 && config->intermediate >= 1);
  FUZZ_PROMISE(config->slice >= 1 && config->most_slices() >= 1);
  FUZZ_PROMISE(config->extension >= 0 && config->extension <= config->slice);
  FUZZ_PROMISE(config->mixer_size == 0 || (config->extension == 0 && !config->causal()));
  for (const int cutoff : config->cutoffs) FUZZ_PROMISE(cutoff > 0 && cutoff < config->vocab);
}

void ReadServing(const testing::TempDirectory& directory) {
  const auto serving = ReadServingConfig(directory.path());
  if (!serving.ok()) return;
  FUZZ_PROMISE(!serving->max_tokens || *serving->max_tokens >= 1);
  FUZZ_PROMISE(!serving->labels || !serving->labels->empty());
  FUZZ_PROMISE(!serving->score_threshold ||
               (*serving->score_threshold >= 0 && *serving->score_threshold <= 1));
  FUZZ_PROMISE(serving->generation.is_object());
}

void ReadSentence(const testing::TempDirectory& directory) {
  const nlohmann::json none = nlohmann::json::object();
  const auto sentence = ReadSentenceConfig(directory.path(), JsonReader(none, "config.json"));
  if (!sentence.ok() || !sentence->modules.ok() || !*sentence->modules) return;
  const SentenceModules& modules = **sentence->modules;
  FUZZ_PROMISE(modules.multi_vector == modules.pooling.empty());
  FUZZ_PROMISE(modules.width_of_answers(8) >= 1);
}

}  // namespace
}  // namespace longview::models

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longview;
  static const testing::TempDirectory directory;
  constexpr const char* kFiles[] = {"longview.json", "1_Pooling/config.json", "modules.json"};
  const auto [kind, text] = fuzz::SplitKind(fuzz::AsText(data, size));
  if (kind % 4 == 0) {
    models::ReadConfig(text);
    models::ReadLsText(text);
    models::ReadCst(text);
    return 0;
  }
  const char* const file = kFiles[kind % 4 - 1];
  directory.Write(file, text);
  models::ReadServing(directory);
  models::ReadSentence(directory);
  std::filesystem::remove(directory.Path(file));
  return 0;
}
