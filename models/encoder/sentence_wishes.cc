#include "models/encoder/sentence_wishes.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "models/encoder/draft.h"
#include "models/status_macros.h"

namespace longview::models {

namespace {

std::string Names(const SentenceConfig* config) {
  std::string names;
  if (config == nullptr) return names;
  for (const auto& [name, prompt] : config->prompts) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", name);
  }
  return names;
}

// Null: the directory has none of the names.
const std::string* ChosenPrompt(const SentenceConfig* config, const Request& request) {
  if (config == nullptr || request.prompt || request.prompt_name) return nullptr;
  for (const std::string& name : request.prompt_choices) {
    const auto found = config->prompts.find(name);
    if (found != config->prompts.end()) return &found->second;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<std::vector<PoolMode>> PoolModesOf(const EncoderFrontEnd& front,
                                                  const Request& request) {
  const SentenceModules* modules = front.modules();
  const std::string& name = request.pooling;
  if (name.empty()) {
    return modules != nullptr && !front.own_pooling ? modules->pooling : std::vector<PoolMode>();
  }
  const std::optional<PoolMode> mode = ParsePoolMode(name);
  if (!mode) {
    return BadRequest("pooling", absl::StrCat("\"", name.substr(0, 64),
                                              "\" is not one of cls, mean, max, lasttoken, "
                                              "mean_sqrt_len_tokens, weightedmean, pooler, none"));
  }
  if (modules != nullptr && modules->HasDense(/*tokens=*/false)) {
    return BadRequest("pooling", "a Dense module follows this model's own pooling");
  }
  return std::vector<PoolMode>{*mode};
}

absl::StatusOr<bool> PoolsParts(const EncoderFrontEnd& front, const Request& request) {
  if (request.pooling == "pooler" || request.pooling == "none") return false;
  ASSIGN_OR_RETURN(const std::vector<PoolMode> modes, PoolModesOf(front, request));
  if (modes.empty()) return front.pooling == Pooling::kMean;
  return modes.size() == 1 && (modes.front() == PoolMode::kMean || modes.front() == PoolMode::kMax);
}

absl::StatusOr<std::string> ResolvePrompt(const SentenceConfig* config, const Request& request) {
  const bool given = request.prompt || request.prompt_name;
  const char* field = request.prompt ? "prompt" : "prompt_name";
  if (request.task != Task::kEmbedding && request.task != Task::kMultiVector) {
    if (!given) return "";
    return BadRequest(field, "means nothing to " + std::string(TaskName(request.task)));
  }
  if (request.prompt && request.prompt_name) {
    return BadRequest("prompt", "given together with prompt_name; send one");
  }
  if (!request.text) {
    const bool none = !given || (request.prompt && request.prompt->empty());
    if (none) return "";
    return BadRequest(field, "goes with text, not with token ids");
  }
  if (request.shared_prompt != nullptr) return *request.shared_prompt;
  if (request.prompt) return *request.prompt;
  if (const std::string* chosen = ChosenPrompt(config, request)) return *chosen;
  const std::string name = request.prompt_name ? *request.prompt_name
                           : config == nullptr ? ""
                                               : config->default_prompt;
  if (!request.prompt_name && name.empty()) return "";
  if (config != nullptr) {
    const auto found = config->prompts.find(name);
    if (found != config->prompts.end()) return found->second;
  }
  const std::string known = Names(config);
  return BadRequest("prompt_name",
                    absl::StrCat("\"", name.substr(0, 64), "\" is not a prompt of this model; ",
                                 known.empty() ? "it has none" : "there are " + known));
}

}  // namespace longview::models
