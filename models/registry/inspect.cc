// The report behind `--check DIR`.
#include "models/inspect.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/dense/compute_choice.h"
#include "models/directory/architecture.h"
#include "models/directory/model_directory.h"
#include "models/model.h"
#include "models/registry/registry.h"

namespace longview::models {
namespace {

constexpr size_t kListedLabels = 8;

// Collects "name: text" lines and remembers the first problem.
class Report {
 public:
  void Line(const std::string& name, const std::string& text) {
    std::string label = name + ":";
    label.resize(std::max<size_t>(label.size() + 1, 14), ' ');
    absl::StrAppend(&text_, label, text, "\n");
  }

  // Returns whether the step went well; what it cannot do is a line of the report.
  bool Step(const absl::Status& status, const std::string& name) {
    if (status.ok()) return true;
    Line(name, absl::StrCat("PROBLEM: ", status.message()));
    if (error_.empty()) error_ = std::string(status.message());
    return false;
  }

  Inspection Finish() && {
    std::replace(error_.begin(), error_.end(), '\n', ' ');
    Line("served", error_.empty() ? "yes" : "no");
    return {.servable = error_.empty(), .report = std::move(text_), .error = std::move(error_)};
  }

 private:
  std::string text_;
  std::string error_;
};

std::string Millions(double count) {
  char text[32];
  std::snprintf(text, sizeof text, count < 1e5 ? "%.0f" : "%.1f million",
                count < 1e5 ? count : count / 1e6);
  return text;
}

std::string DescribeWeights(const Checkpoint& checkpoint) {
  std::map<std::string, int> types;
  double elements = 0;
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    ++types[std::string(DTypeName(tensor.dtype))];
    elements += static_cast<double>(tensor.elements());
  }
  return absl::StrCat(checkpoint.tensors().size(), " tensors, ", Millions(elements), " numbers (",
                      absl::StrJoin(types, ", ", absl::PairFormatter(" x ")), "), ",
                      Millions(static_cast<double>(checkpoint.total_bytes())), " bytes");
}

// `model` says whether a directory without tokenizer files still reads text.
std::string DescribeTokenizer(const ModelDirectory& directory,
                              const absl::StatusOr<ModelInfo>& model) {
  if (directory.bytes) {
    return absl::StrCat("bytes, ids up to ", directory.bytes->max_id, ", model_max_length ",
                        directory.bytes->model_max_length);
  }
  if (!directory.tokenizer) {
    return model.ok() && model->has_tokenizer
               ? "as config.json and the family's own files say"
               : "none: requests must bring token ids, text is refused";
  }
  const Tokenizer& tokenizer = *directory.tokenizer;
  const int64_t limit = tokenizer.model_max_length();
  return absl::StrCat(tokenizer.vocab_size(), " tokens",
                      limit > 0 ? absl::StrCat(", model_max_length ", limit) : "");
}

std::string DescribeLabels(const std::vector<std::string>& labels) {
  const size_t listed = std::min(labels.size(), kListedLabels);
  return absl::StrCat(labels.size(), ": ",
                      absl::StrJoin(labels.begin(), labels.begin() + listed, ", "),
                      listed < labels.size() ? ", ..." : "");
}

void DescribeModel(const ModelInfo& info, Report& report) {
  std::vector<std::string> tasks;
  for (Task task : info.tasks) tasks.emplace_back(TaskName(task));
  report.Line("task", tasks.empty() ? "" : tasks[0]);
  if (tasks.size() > 1) {
    tasks.erase(tasks.begin());
    report.Line("also", absl::StrJoin(tasks, ", "));
  }
  if (!info.labels.empty()) report.Line("labels", DescribeLabels(info.labels));
  if (info.max_tokens > 0) report.Line("max tokens", absl::StrCat(info.max_tokens));
  if (info.parameters > 0) report.Line("parameters", Millions(info.parameters));
}

// Adds the type that the model computes in and why; of which device's, `options` says.
void DescribeCompute(const ModelDirectory& directory, const LoadOptions& options, Report& report) {
  const absl::StatusOr<Devices> devices = FindDevices(options.device);
  if (!report.Step(devices.status(), "device")) return;
  const auto choose = devices->names.front() == "cpu" ? ChooseCompute : ChooseDeviceCompute;
  const absl::StatusOr<ComputeChoice> choice =
      choose(options.dtype, directory.serving.dtype.value_or(""), directory.common.stored_dtype);
  if (!report.Step(choice.status(), "computed in")) return;
  report.Line("computed in", absl::StrCat(ChosenTypeName(*choice), ": ", choice->why));
}

std::string DescribeActivation(ScoreActivation activation) {
  switch (activation) {
    case ScoreActivation::kSigmoid:
      return "sigmoid";
    case ScoreActivation::kTanh:
      return "tanh";
    case ScoreActivation::kIdentity:
      return "identity: scores are the logits";
  }
  return "";
}

// Adds the modules and prompts of sentence-transformers, and a reranker's activation.
void DescribeSentence(const SentenceConfig& sentence, const ModelInfo& info, Report& report) {
  if (sentence.modules.ok() && *sentence.modules) {
    const SentenceModules& modules = **sentence.modules;
    std::vector<std::string> parts;
    for (const PoolMode mode : modules.pooling) parts.emplace_back(PoolModeName(mode));
    for (const SentenceStep& step : modules.steps) {
      parts.push_back(step.kind == SentenceStep::Kind::kDense ? absl::StrCat("Dense ", step.out)
                                                              : "Normalize");
    }
    report.Line("embedding", absl::StrCat(info.embedding_width, ": ", absl::StrJoin(parts, ", ")));
  }
  const bool reranks =
      std::find(info.tasks.begin(), info.tasks.end(), Task::kRerank) != info.tasks.end();
  if (reranks && sentence.score_activation.ok()) {
    report.Line("activation", DescribeActivation(*sentence.score_activation));
  }
  std::vector<std::string> names;
  for (const auto& [name, prompt] : sentence.prompts) {
    if (!prompt.empty()) names.push_back(name);
  }
  if (!names.empty()) {
    const std::string& fallback = sentence.default_prompt;
    report.Line("prompts", absl::StrCat(absl::StrJoin(names, ", "),
                                        fallback.empty() ? "" : "; default ", fallback));
  }
}

// Adds the model's notes; a model of another family than encoders has not those of the directory.
void AddNotes(std::vector<std::string> of_directory, const std::vector<std::string>& of_model,
              Report& report) {
  for (const std::string& note : of_model) {
    std::erase(of_directory, note);
    report.Line("note", note);
  }
  for (const std::string& note : of_directory) report.Line("note", note);
}

}  // namespace

Inspection InspectDirectory(const std::string& path, std::optional<Task> task) {
  return InspectDirectory(path, LoadOptions{.task = task});
}

Inspection InspectDirectory(const std::string& path, const LoadOptions& options) {
  Report report;
  report.Line("directory", path);
  ModelDirectory directory;
  directory.path = path;
  if (!report.Step(ReadConfiguration(directory), "configuration")) {
    // The weights may have a problem of their own, which is worth knowing at once.
    report.Step(OpenWeights(directory), "weights");
    return std::move(report).Finish();
  }
  const absl::Status opened = OpenWeights(directory);
  if (!opened.ok() && directory.common.architecture.empty()) {  // Only the weights name it.
    report.Step(opened, "weights");
    return std::move(report).Finish();
  }
  absl::Status complete_class = opened.ok() ? CompleteConfiguration(directory) : absl::OkStatus();
  if (complete_class.ok() && options.task) complete_class = ChooseTask(*options.task, directory);
  if (!report.Step(complete_class, "architecture")) return std::move(report).Finish();
  const absl::StatusOr<const Family*> family = ChooseFamily(directory);
  if (report.Step(family.status(), "architecture")) {
    report.Line("architecture", directory.common.architecture);
    report.Line("family", std::string((*family)->name));
  }
  const bool weights = report.Step(opened, "weights");
  if (weights) report.Line("weights", DescribeWeights(directory.checkpoint));
  const bool tokenizer = report.Step(OpenTokenizer(directory), "tokenizer");
  const bool complete = family.ok() && weights && tokenizer;
  const absl::StatusOr<ModelInfo> info =
      complete ? (*family)->describe(directory) : absl::UnknownError("not described");
  if (tokenizer) report.Line("tokenizer", DescribeTokenizer(directory, info));
  if (complete && report.Step(WithTaskHint(info.status(), LacksNamedHead(directory)), "model")) {
    DescribeModel(*info, report);
    DescribeSentence(directory.sentence, *info, report);
    DescribeCompute(directory, options, report);
  }
  const std::vector<std::string> none;
  AddNotes(CompletionNotes(directory), info.ok() ? info->notes : none, report);
  return std::move(report).Finish();
}

}  // namespace longview::models
