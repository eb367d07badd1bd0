#include "models/directory/architecture.h"

#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "models/config/json_reader.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

// The beginnings of HuggingFace's class names, by `model_type`.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kPrefixes = {{
    {"bert", "Bert"},
    {"led", "LED"},
    {"longformer", "Longformer"},
    {"modernbert", "ModernBert"},
    {"roberta", "Roberta"},
    {"xlm-roberta", "XLMRoberta"},
}};

// Their ends, by task.
constexpr std::array<std::pair<Task, std::string_view>, 8> kSuffixes = {{
    {Task::kTextClassification, "ForSequenceClassification"},
    {Task::kRerank, "ForSequenceClassification"},
    {Task::kMultipleChoice, "ForMultipleChoice"},
    {Task::kTokenClassification, "ForTokenClassification"},
    {Task::kQuestionAnswering, "ForQuestionAnswering"},
    {Task::kFillMask, "ForMaskedLM"},
    {Task::kEmbedding, "Model"},
    {Task::kText2TextGeneration, "ForConditionalGeneration"},
}};

template <class Key, class Table>
std::optional<std::string_view> Lookup(const Table& table, const Key& key) {
  for (const auto& [known, value] : table) {
    if (known == key) return value;
  }
  return std::nullopt;
}

std::string TypesListed() {
  std::string names;
  for (const auto& [type, prefix] : kPrefixes) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", std::string(type));
  }
  return names;
}

std::string TasksListed() {
  std::string names;
  for (const auto& [task, suffix] : kSuffixes) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", std::string(TaskName(task)));
  }
  return names;
}

bool Has(const nlohmann::json& config, const char* key) {
  const auto value = config.find(key);
  return value != config.end() && !value->is_null();
}

// The tensor of this name, behind whatever the base model is called.
const TensorView* FindEnding(const ModelDirectory& directory, std::string_view ending) {
  for (const auto& [name, tensor] : directory.checkpoint.tensors()) {
    if (!name.ends_with(ending)) continue;
    const size_t before = name.size() - ending.size();
    if (before == 0 || name[before - 1] == '.') return &tensor;
  }
  return nullptr;
}

const TensorView* HeadOf(const ModelDirectory& directory) {
  for (const std::string_view name : {"classifier.out_proj.weight", "classifier.weight"}) {
    const TensorView* tensor = directory.checkpoint.Find(name);
    if (tensor != nullptr && tensor->shape.size() == 2) return tensor;
  }
  return nullptr;
}

// `classifier.weight` is a head of texts, of tokens or of choices.
Task TaskOfClassifier(const ModelDirectory& directory, const TensorView& head) {
  const std::string& type = directory.common.model_type;
  const bool pools = FindEnding(directory, "pooler.dense.weight") != nullptr;
  if (type == "modernbert") return Task::kTextClassification;
  if (type == "bert") return pools ? Task::kTextClassification : Task::kTokenClassification;
  return pools && head.shape[0] == 1 ? Task::kMultipleChoice : Task::kTokenClassification;
}

// Whether any tensor belongs to a head of HuggingFace's classes.
bool HasHead(const ModelDirectory& directory) {
  for (const auto& [name, tensor] : directory.checkpoint.tensors()) {
    for (const std::string_view head :
         {"classifier.", "cls.", "decoder.", "head.", "lm_head.", "qa_outputs."}) {
      if (name.starts_with(head)) return true;
    }
  }
  return false;
}

Task TaskOfTensors(const ModelDirectory& directory) {
  const auto has = [&](std::string_view name) {
    return directory.checkpoint.Find(name) != nullptr;
  };
  if (directory.common.model_type == "led") return Task::kText2TextGeneration;
  if (has("classifier.out_proj.weight")) return Task::kTextClassification;
  if (const TensorView* head = HeadOf(directory)) return TaskOfClassifier(directory, *head);
  if (has("qa_outputs.weight")) return Task::kQuestionAnswering;
  const auto& modules = directory.sentence.modules;
  if (modules.ok() && *modules) return Task::kEmbedding;
  for (const std::string_view name :
       {"lm_head.dense.weight", "decoder.bias", "cls.predictions.transform.dense.weight"}) {
    if (has(name)) return Task::kFillMask;
  }
  return Task::kEmbedding;
}

// The first class of config.json, "" if it names none.
std::string NamedClass(const nlohmann::json& config) {
  const auto names = config.find("architectures");
  if (names == config.end() || !names->is_array() || names->empty()) return "";
  return names->front().is_string() ? names->front().get<std::string>() : "";
}

// `task` of longview.json.
absl::StatusOr<std::optional<Task>> ReadTask(const std::string& directory) {
  const std::string path = (std::filesystem::path(directory) / "longview.json").string();
  const absl::StatusOr<nlohmann::json> file = ReadJsonFile(path);
  if (absl::IsNotFound(file.status())) return std::nullopt;
  if (!file.ok()) return file.status();
  JsonReader reader(*file, path);
  if (!reader.Has("task")) return std::nullopt;
  const std::optional<Task> task = ParseTask(reader.String("task"));
  if (!task) reader.Refuse("task", absl::StrCat("one of ", TasksListed()));
  if (!reader.status().ok()) return reader.status();
  return task;
}

// The head whose rows count the labels; null where a file counts them.
const TensorView* CountedHead(const ModelDirectory& directory) {
  constexpr int64_t kMostLabels = 1 << 20;
  if (!HeadCountsLabels(directory)) return nullptr;
  const TensorView* head = HeadOf(directory);
  // Other shapes are refused with the weights.
  const bool good = head != nullptr && head->shape[0] >= 1 && head->shape[0] <= kMostLabels;
  return good ? head : nullptr;
}

// One label without a problem type is a score in [0, 1], as where config.json says so.
void CompleteLabels(ModelDirectory& directory) {
  const TensorView* head = CountedHead(directory);
  if (head == nullptr) return;
  const int64_t rows = head->shape[0];
  CommonConfig& common = directory.common;
  if (!Has(directory.config, "problem_type")) {
    common.problem_type = rows == 1 ? ProblemType::kMultiLabel : ProblemType::kSingleLabel;
  }
  if (directory.serving.labels) return;
  common.labels.clear();
  for (int64_t id = 0; id < rows; ++id) common.labels.push_back(absl::StrCat("LABEL_", id));
}

absl::Status ChooseClass(Task task, ClassSource source, ModelDirectory& directory) {
  CommonConfig& common = directory.common;
  const auto prefix = Lookup(kPrefixes, common.model_type);
  if (!prefix) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory.config_path, ": ",
                     common.architecture.empty() ? "\"architectures\" names no class"
                                                 : "the task cannot be chosen",
                     ", and \"model_type\": \"", common.model_type.substr(0, 64),
                     "\" is none of those for which --task chooses one: ", TypesListed()));
  }
  const auto suffix = Lookup(kSuffixes, task);
  if (!suffix) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory.root, ": \"task\": \"", std::string(TaskName(task)),
                     "\" is not the task of a head; these are: ", TasksListed()));
  }
  common.architecture = absl::StrCat(std::string(*prefix), std::string(*suffix));
  directory.class_source = source;
  return absl::OkStatus();
}

}  // namespace

absl::Status ChooseTask(Task task, ModelDirectory& directory) {
  return ChooseClass(task, ClassSource::kTask, directory);
}

bool TakeBaseClass(ClassSource source, ModelDirectory& directory) {
  return Lookup(kPrefixes, directory.common.model_type) &&
         ChooseClass(Task::kEmbedding, source, directory).ok();
}

absl::Status RefuseClass(const ModelDirectory& directory) {
  const std::string& type = directory.common.model_type;
  const bool known = Lookup(kPrefixes, type).has_value();
  return absl::InvalidArgumentError(absl::StrCat(
      directory.config_path, ": the class \"", directory.common.architecture.substr(0, 64),
      "\" of model_type \"", type.substr(0, 64), "\" is not served; --task chooses another for ",
      known ? absl::StrCat("it: ", TasksListed()) : absl::StrCat("the types ", TypesListed())));
}

absl::Status CompleteConfiguration(ModelDirectory& directory) {
  CompleteLabels(directory);
  ASSIGN_OR_RETURN(const std::optional<Task> wish, ReadTask(directory.root));
  if (wish) return ChooseTask(*wish, directory);
  if (directory.common.architecture.empty()) {
    return ChooseClass(TaskOfTensors(directory), ClassSource::kTensors, directory);
  }
  // The library named the class that was trained, and saved the base.
  const auto& modules = directory.sentence.modules;
  const bool has_modules = !modules.ok() || modules->has_value();
  if (has_modules && LacksNamedHead(directory)) TakeBaseClass(ClassSource::kNoHead, directory);
  return absl::OkStatus();
}

bool LacksNamedHead(const ModelDirectory& directory) {
  const std::string& named = directory.common.architecture;
  const bool names_head =
      absl::StrContains(named, "For") && !named.ends_with("ForConditionalGeneration");
  return names_head && Lookup(kPrefixes, directory.common.model_type) && !HasHead(directory);
}

absl::Status WithTaskHint(const absl::Status& refused, bool lacks_head) {
  if (!lacks_head || !absl::IsNotFound(refused)) return refused;
  return absl::NotFoundError(
      absl::StrCat(refused.message(), "; --task embedding serves the model without a head"));
}

bool HeadCountsLabels(const ModelDirectory& directory) {
  return !Has(directory.config, "id2label") && !Has(directory.config, "num_labels") &&
         Lookup(kPrefixes, directory.common.model_type).has_value();
}

std::vector<std::string> CompletionNotes(const ModelDirectory& directory) {
  std::vector<std::string> notes;
  const std::string named = NamedClass(directory.config);
  const std::string& taken = directory.common.architecture;
  if (named.empty()) {
    notes.push_back(absl::StrCat("config.json names no class: taken as ", taken,
                                 "; \"task\" in longview.json or --task overrides that"));
  } else if (named != taken) {
    const std::string overridden = absl::StrCat(": taken as ", taken, "; --task overrides that");
    switch (directory.class_source) {
      case ClassSource::kNoHead:
        notes.push_back(
            absl::StrCat("config.json names ", named, ", whose head the weights lack", overridden));
        break;
      case ClassSource::kNotServed:
        notes.push_back(
            absl::StrCat("config.json names ", named, ", which is not served", overridden));
        break;
      default:
        notes.push_back(
            absl::StrCat("config.json names ", named, ": taken as ", taken, ", as the task says"));
    }
  }
  // Two are HuggingFace's default, which its files leave out.
  const TensorView* head = directory.serving.labels ? nullptr : CountedHead(directory);
  if (head != nullptr && head->shape[0] != 2) {
    notes.push_back(absl::StrCat("config.json has no labels: ", head->shape[0], " by the rows of ",
                                 head->name));
  }
  int max_id = -1;
  if (directory.tokenizer) max_id = directory.tokenizer->max_id();
  if (directory.bytes) max_id = directory.bytes->max_id;
  const auto rows = directory.config.find("vocab_size");
  if (rows != directory.config.end() && rows->is_number_integer() && *rows <= max_id) {
    notes.push_back(absl::StrCat("the tokenizer has ids up to ", max_id, ", the model's table has ",
                                 rows->get<int64_t>(),
                                 " rows: texts with tokens beyond them are refused"));
  }
  return notes;
}

}  // namespace longview::models
