#include "models/config/sentence_config.h"

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/config/named_values.h"
#include "models/config/transformer_module.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

using nlohmann::json;

// In the order in which the flags of older releases are concatenated.
constexpr std::array<std::pair<std::string_view, PoolMode>, 6> kModes = {{
    {"cls", PoolMode::kCls},
    {"max", PoolMode::kMax},
    {"mean", PoolMode::kMean},
    {"mean_sqrt_len_tokens", PoolMode::kMeanSqrt},
    {"weightedmean", PoolMode::kWeightedMean},
    {"lasttoken", PoolMode::kLastToken},
}};
constexpr std::array<std::pair<std::string_view, PoolMode>, 6> kFlags = {{
    {"pooling_mode_cls_token", PoolMode::kCls},
    {"pooling_mode_max_tokens", PoolMode::kMax},
    {"pooling_mode_mean_tokens", PoolMode::kMean},
    {"pooling_mode_mean_sqrt_len_tokens", PoolMode::kMeanSqrt},
    {"pooling_mode_weightedmean_tokens", PoolMode::kWeightedMean},
    {"pooling_mode_lasttoken", PoolMode::kLastToken},
}};

constexpr std::array<std::pair<std::string_view, DenseActivation>, 6> kDenseActivations = {{
    {"torch.nn.modules.activation.Tanh", DenseActivation::kTanh},
    {"torch.nn.modules.activation.ReLU", DenseActivation::kRelu},
    {"torch.nn.modules.activation.GELU", DenseActivation::kGelu},
    {"torch.nn.modules.activation.SiLU", DenseActivation::kSilu},
    {"torch.nn.modules.activation.Sigmoid", DenseActivation::kSigmoid},
    {"torch.nn.modules.linear.Identity", DenseActivation::kIdentity},
}};
constexpr std::array<std::pair<std::string_view, ScoreActivation>, 3> kScoreActivations = {{
    {"torch.nn.modules.activation.Sigmoid", ScoreActivation::kSigmoid},
    {"torch.nn.modules.activation.Tanh", ScoreActivation::kTanh},
    {"torch.nn.modules.linear.Identity", ScoreActivation::kIdentity},
}};

// A file of the directory that need not be there: then an empty object.
absl::StatusOr<json> ReadOptional(const std::string& path) {
  absl::StatusOr<json> file = ReadJsonFile(path);
  if (absl::IsNotFound(file.status())) return json::object();
  return file;
}

std::vector<PoolMode> ReadNewModes(JsonReader& reader) {
  const json& value = *reader.Find("pooling_mode");
  std::vector<std::string> names;
  if (value.is_string()) {
    names.push_back(value.get<std::string>());
  } else {
    names = reader.StringList("pooling_mode");
    if (names.empty()) reader.Refuse("pooling_mode", "a name or a list of names");
  }
  std::vector<PoolMode> modes;
  for (const std::string& name : names) {
    modes.push_back(ReadNamed(reader, "pooling_mode", name, kModes));
  }
  return modes;
}

std::vector<PoolMode> ReadFlags(const json& file, JsonReader& reader) {
  constexpr std::string_view kPrefix = "pooling_mode_";
  for (const auto& [key, value] : file.items()) {
    if (key.starts_with(kPrefix) && reader.Bool(key)) {
      ReadNamed(reader, key, key, kFlags);
    }
  }
  std::vector<PoolMode> modes;
  for (const auto& [key, mode] : kFlags) {
    if (reader.Has(key) && reader.Bool(key)) modes.push_back(mode);
  }
  if (modes.empty()) modes.push_back(PoolMode::kMean);
  return modes;
}

absl::Status ReadPooling(const json& file, const std::string& path, SentenceModules& modules) {
  JsonReader reader(file, path);
  modules.pooling = reader.Has("pooling_mode") ? ReadNewModes(reader) : ReadFlags(file, reader);
  modules.include_prompt = reader.BoolOr("include_prompt", true);
  return reader.status();
}

bool OverTokens(JsonReader& reader) {
  return reader.ChoiceOr("module_input_name", "sentence_embedding",
                         {"sentence_embedding", "token_embeddings"}) == "token_embeddings";
}

absl::StatusOr<SentenceStep> ReadDense(const std::string& folder) {
  const std::string path = folder + "/config.json";
  ASSIGN_OR_RETURN(const json file, ReadJsonFile(path));
  JsonReader reader(file, path);
  SentenceStep step;
  step.kind = SentenceStep::Kind::kDense;
  step.path = folder;
  step.in = reader.Int("in_features", 1, 1 << 20);
  step.out = reader.Int("out_features", 1, 1 << 20);
  step.bias = reader.BoolOr("bias", true);
  step.activation = ReadNamed(reader, "activation_function",
                              reader.StringOr("activation_function", kDenseActivations[0].first),
                              kDenseActivations);
  step.tokens = OverTokens(reader);
  if (reader.BoolOr("use_residual", false)) reader.Refuse("use_residual", "false");
  if (!reader.status().ok()) return reader.status();
  return step;
}

absl::StatusOr<SentenceStep> ReadNormalize(const std::string& folder) {
  const std::string path = folder + "/config.json";
  ASSIGN_OR_RETURN(const json file, ReadOptional(path));
  JsonReader reader(file, path);
  SentenceStep step;
  step.tokens = OverTokens(reader);
  if (!reader.status().ok()) return reader.status();
  return step;
}

class ModuleReader {
 public:
  ModuleReader(const std::string& directory, const std::string& path)
      : directory_(directory), path_(path) {}

  absl::StatusOr<SentenceModules> Read(const json& list) {
    for (size_t i = 0; i < list.size(); ++i) {
      RETURN_IF_ERROR(Add(list[i], i == 0));
    }
    const bool over_tokens = !modules_.steps.empty() || masks_;
    modules_.multi_vector = modules_.pooling.empty() && over_tokens;
    return std::move(modules_);
  }

 private:
  absl::Status Add(const json& module, bool first) {
    JsonReader reader(module, path_);
    const std::string type = reader.String("type");
    const std::string folder = reader.StringOr("path", "");
    if (!reader.status().ok()) return reader.status();
    const std::string name = type.substr(type.rfind('.') + 1);
    if ((name == "Transformer") != first) {
      reader.Refuse("type", "one Transformer, before all others");
      return reader.status();
    }
    if (!IsInside(folder)) {
      reader.Refuse("path", "a folder of the directory");
      return reader.status();
    }
    const std::string full = (std::filesystem::path(directory_) / folder).string();
    if (name == "Pooling") return AddPooling(full, reader);
    if (name == "Dense") return AddStep(ReadDense(full), reader);
    if (name == "Normalize") return AddStep(ReadNormalize(full), reader);
    masks_ = masks_ || name == "MultiVectorMask";
    if (name == "Transformer" || name == "MultiVectorMask") return absl::OkStatus();
    reader.Refuse("type", "a Transformer, Pooling, Dense, Normalize or MultiVectorMask module");
    return reader.status();
  }

  absl::Status AddPooling(const std::string& folder, JsonReader& reader) {
    if (!modules_.pooling.empty()) {
      reader.Refuse("type", "one Pooling");
      return reader.status();
    }
    const std::string path = folder + "/config.json";
    ASSIGN_OR_RETURN(const json file, ReadJsonFile(path));
    return ReadPooling(file, path, modules_);
  }

  // Steps over tokens stand before Pooling, those over the vector behind it.
  absl::Status AddStep(absl::StatusOr<SentenceStep> step, JsonReader& reader) {
    if (!step.ok()) return step.status();
    if (step->tokens != modules_.pooling.empty()) {
      reader.Refuse("type", step->tokens ? "a module over token_embeddings before Pooling"
                                         : "a module over sentence_embedding behind Pooling");
      return reader.status();
    }
    modules_.steps.push_back(*std::move(step));
    return absl::OkStatus();
  }

  const std::string directory_, path_;
  SentenceModules modules_;
  bool masks_ = false;
};

absl::StatusOr<std::optional<SentenceModules>> ReadModules(const std::string& directory) {
  const absl::StatusOr<json> list = ReadModuleList(directory);
  if (list.ok()) {
    ASSIGN_OR_RETURN(SentenceModules modules,
                     ModuleReader(directory, directory + "/modules.json").Read(*list));
    if (modules.pooling.empty() && !modules.multi_vector) {
      return std::optional<SentenceModules>();
    }
    return std::optional<SentenceModules>(std::move(modules));
  }
  if (!absl::IsNotFound(list.status())) return list.status();
  // A pooling that was put beside a model by hand.
  const std::string pooling = directory + "/1_Pooling/config.json";
  const absl::StatusOr<json> file = ReadJsonFile(pooling);
  if (absl::IsNotFound(file.status())) return std::optional<SentenceModules>();
  if (!file.ok()) return file.status();
  SentenceModules modules;
  RETURN_IF_ERROR(ReadPooling(*file, pooling, modules));
  return std::optional<SentenceModules>(std::move(modules));
}

absl::Status ReadPrompts(JsonReader& reader, SentenceConfig& config) {
  if (const json* prompts = reader.Find("prompts")) {
    for (const auto& [name, prompt] : prompts->items()) {
      if (prompt.is_null()) continue;
      if (!prompts->is_object() || !prompt.is_string()) {
        reader.Refuse("prompts", "an object of texts");
        return reader.status();
      }
      config.prompts[name] = prompt.get<std::string>();
    }
  }
  config.default_prompt = reader.StringOr("default_prompt_name", "");
  if (!config.default_prompt.empty() && !config.prompts.contains(config.default_prompt)) {
    reader.Refuse("default_prompt_name", "a key of prompts");
  }
  if (reader.Has("truncate_dim")) {
    config.dimensions = reader.Int("truncate_dim", 1);
  }
  return reader.status();
}

absl::StatusOr<ScoreActivation> ReadScoreActivation(JsonReader sentence, JsonReader config) {
  const auto read = [](JsonReader& reader, const char* key) -> absl::StatusOr<ScoreActivation> {
    const ScoreActivation value = ReadNamed(reader, key, reader.String(key), kScoreActivations);
    if (!reader.status().ok()) return reader.status();
    return value;
  };
  if (sentence.Has("activation_fn")) return read(sentence, "activation_fn");
  if (config.Has("sentence_transformers")) {
    JsonReader nested = config.Object("sentence_transformers");
    if (nested.Has("activation_fn")) return read(nested, "activation_fn");
  }
  constexpr const char* kOld = "sbert_ce_default_activation_function";
  if (config.Has(kOld)) return read(config, kOld);
  return ScoreActivation::kSigmoid;
}

}  // namespace

std::optional<PoolMode> ParsePoolMode(std::string_view name) {
  for (const auto& [known, mode] : kModes) {
    if (known == name) return mode;
  }
  return std::nullopt;
}

std::string_view PoolModeName(PoolMode mode) {
  for (const auto& [name, known] : kModes) {
    if (known == mode) return name;
  }
  return "";
}

bool SentenceModules::HasDense(bool tokens) const {
  for (const SentenceStep& step : steps) {
    if (step.kind == SentenceStep::Kind::kDense && step.tokens == tokens) return true;
  }
  return false;
}

int64_t SentenceModules::width_of_answers(int64_t width) const {
  bool pooled = pooling.empty();
  for (const SentenceStep& step : steps) {
    if (!pooled && !step.tokens) {
      width *= static_cast<int64_t>(pooling.size());
      pooled = true;
    }
    if (step.kind == SentenceStep::Kind::kDense) width = step.out;
  }
  return pooled ? width : width * static_cast<int64_t>(pooling.size());
}

absl::StatusOr<SentenceConfig> ReadSentenceConfig(const std::string& directory,
                                                  const JsonReader& config) {
  SentenceConfig sentence;
  sentence.modules = ReadModules(directory);
  const std::string library = directory + "/config_sentence_transformers.json";
  ASSIGN_OR_RETURN(const json file, ReadOptional(library));
  JsonReader reader(file, library);
  if (absl::Status status = ReadPrompts(reader, sentence); !status.ok() && sentence.modules.ok()) {
    sentence.modules = status;
  }
  sentence.score_activation = ReadScoreActivation(JsonReader(file, library), config);

  ASSIGN_OR_RETURN(const TextLimits limits, ReadTextLimits(FindTransformer(directory)));
  sentence.limits = limits;
  return sentence;
}

}  // namespace longview::models
