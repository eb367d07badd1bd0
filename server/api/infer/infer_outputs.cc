#include "server/api/infer/infer_outputs.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "models/status_macros.h"
#include "server/api/calls/context.h"
#include "server/api/infer/answer_json.h"
#include "server/api/infer/detection_outputs.h"
#include "server/api/infer/parameter_values.h"
#include "server/api/infer/scores.h"
#include "server/api/infer/sequence_outputs.h"
#include "server/errors.h"

namespace longview::server {
namespace {

using models::HostTensor;
using models::Task;
using models::TensorSpec;
using models::TensorType;

constexpr char kClassification[] = "classification";  // Triton's parameter of an output.

absl::Status BadOutput(std::string_view name, std::string_view problem) {
  return BadField(absl::StrCat("output ", Quoted(name)), problem);
}

OutputKind KindOf(std::string_view name, Task task) {
  if (Generates(task)) {
    if (name == "text") return OutputKind::kText;
    if (name == "token_ids") return OutputKind::kTokenIds;
    if (name == "num_tokens") return OutputKind::kNumTokens;
    if (name == "scores") return OutputKind::kScores;
    if (name == "token_logprobs") return OutputKind::kTokenLogprobs;
    return OutputKind::kTensor;
  }
  if (task == Task::kObjectDetection) {
    if (name == "boxes") return OutputKind::kBoxes;
    if (name == "scores") return OutputKind::kDetectionScores;
    if (name == "labels") return OutputKind::kDetectionLabels;
    if (name == "label_names") return OutputKind::kDetectionNames;
    if (name == "masks") return OutputKind::kMaskRuns;
    return OutputKind::kTensor;
  }
  if (name == "probabilities") return OutputKind::kProbabilities;
  if (name == "label") return OutputKind::kLabel;
  if (name == "entities") return OutputKind::kEntities;
  if (name == "answer") return OutputKind::kAnswer;
  if (name == "top") return OutputKind::kTop;
  return OutputKind::kTensor;
}

bool IsPerToken(std::string_view name, Task task) {
  if (name == "last_hidden_state" || name == "start_logits" || name == "end_logits") return true;
  if (name == "token_logprobs" || name == "encoder_last_hidden_state") return true;
  return name == "logits" &&
         (task == Task::kTokenClassification || task == Task::kFillMask || Generates(task));
}

// Why a request of this shape cannot have the output; empty if it can.
std::string Hindrance(std::string_view name, Task task, const ItemShape& shape,
                      const std::string& pooling) {
  if (IsPerToken(name, task) && shape.items > 1) {
    return absl::StrCat("has one row per token and needs n = 1; n is ", shape.items);
  }
  if (name.starts_with("features.") && shape.items > 1) {
    return absl::StrCat("is one image's map and needs n = 1; n is ", shape.items);
  }
  if (name == "entities" && !shape.from_text) return "needs the input text";
  if (name == "embedding" && pooling == "none") {
    return "there is none with pooling \"none\"; name last_hidden_state";
  }
  if (!Generates(task)) return "";
  const OutputKind kind = KindOf(name, task);
  const bool of_prompt = kind == OutputKind::kTokenLogprobs || name == "logits";
  const bool of_sequences = !of_prompt && kind != OutputKind::kTensor;
  if (of_prompt && !shape.scores) return "needs max_tokens 0: it scores the prompt";
  if (of_prompt && task == Task::kText2TextGeneration && shape.decoder_tokens == 0) {
    return "needs decoder_input_ids: it is of them";
  }
  if (of_sequences && shape.scores) return "there is none with max_tokens 0";
  return "";
}

const TensorSpec* FindSpec(const models::ModelInfo& info, std::string_view name) {
  for (const TensorSpec& spec : info.outputs) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

// Applies the parameters of a requested output. Only masks have one: they come as run lengths, or
// as a BOOL per pixel.
absl::Status ApplyParameters(const inference::ModelInferRequest::InferRequestedOutputTensor& output,
                             Task task, TensorSpec& spec) {
  for (const auto& [name, value] : output.parameters()) {
    if (name == kClassification || (name == "binary_data" && value.has_bool_param())) continue;
    if (name != "datatype" || KindOf(spec.name, task) != OutputKind::kMaskRuns) {
      return BadOutput(spec.name, absl::StrCat("unknown parameter ", Quoted(name)));
    }
    if (value.string_param() == "BOOL") {
      spec.type = TensorType::kBool;
    } else if (value.string_param() != "BYTES") {
      return BadOutput(spec.name,
                       absl::StrCat("parameter \"datatype\": ", Quoted(value.string_param()),
                                    " is not BYTES or BOOL"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TensorSpec>> NamedOutputs(const inference::ModelInferRequest& request,
                                                     const models::ModelInfo& info,
                                                     const ItemShape& shape,
                                                     const std::string& pooling) {
  std::vector<TensorSpec> specs;
  for (const auto& output : request.outputs()) {
    const TensorSpec* spec = FindSpec(info, output.name());
    if (spec == nullptr) {
      const std::string names = absl::StrJoin(
          info.outputs, ", ", [](std::string* out, const auto& known) { *out += known.name; });
      return BadOutput(output.name(), absl::StrCat("unknown name; the model gives: ", names));
    }
    for (const TensorSpec& other : specs) {
      if (other.name == spec->name) return BadOutput(spec->name, "named twice");
    }
    const std::string hindrance = Hindrance(spec->name, info.task, shape, pooling);
    if (!hindrance.empty()) return BadOutput(spec->name, hindrance);
    specs.push_back(*spec);
    if (auto status = ApplyParameters(output, info.task, specs.back()); !status.ok()) return status;
  }
  return specs;
}

absl::StatusOr<std::vector<TensorSpec>> DefaultOutputs(const models::ModelInfo& info,
                                                       const ItemShape& shape,
                                                       const std::string& pooling) {
  std::vector<TensorSpec> specs;
  std::string reason = "name the outputs you want";
  for (const TensorSpec& spec : info.outputs) {
    if (!spec.by_default) continue;
    const bool hidden_instead = spec.name == "embedding" && pooling == "none";
    const TensorSpec* chosen = hidden_instead ? FindSpec(info, "last_hidden_state") : &spec;
    if (chosen == nullptr) continue;
    const std::string hindrance = Hindrance(chosen->name, info.task, shape, pooling);
    if (hindrance.empty()) {
      specs.push_back(*chosen);
    } else {
      reason = absl::StrCat(Quoted(chosen->name), " ", hindrance);
    }
  }
  if (specs.empty()) return BadField("outputs", absl::StrCat("no default output: ", reason));
  return specs;
}

// How many classes are wanted instead of the scores; 0 = the scores.
absl::StatusOr<int> ClassesWanted(
    const inference::ModelInferRequest::InferRequestedOutputTensor& output, OutputKind kind,
    const models::ModelInfo& info) {
  const auto wanted = output.parameters().find(kClassification);
  if (wanted == output.parameters().end()) return 0;
  const bool scores = kind == OutputKind::kProbabilities ||
                      (output.name() == "logits" && !IsPerToken(output.name(), info.task));
  if (!scores || info.labels.empty()) {
    return BadOutput(output.name(),
                     "parameter \"classification\" goes with the logits and "
                     "probabilities of a classifier");
  }
  const std::optional<int64_t> count = AsInteger(wanted->second);
  if (!count || *count < 1) {
    return BadOutput(
        output.name(),
        absl::StrCat("parameter \"classification\": ", ValueText(wanted->second), " is below 1"));
  }
  return static_cast<int>(std::min<int64_t>(*count, std::ssize(info.labels)));
}

// Rows of scores as their best classes, "score:index:label".
HostTensor ToClasses(const HostTensor& scores, const std::vector<std::string>& labels, int count) {
  const std::span<const float> all = scores.floats();
  const size_t width = labels.size();
  HostTensor classes;
  classes.name = scores.name;
  classes.type = TensorType::kBytes;
  classes.shape = {scores.shape.front(), count};
  std::vector<size_t> order(width);
  for (size_t begin = 0; begin + width <= all.size(); begin += width) {
    const auto row = all.subspan(begin, width);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return row[a] > row[b]; });
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      classes.strings.push_back(
          absl::StrFormat("%f:%d:%s", row[order[i]], order[i], labels[order[i]]));
    }
  }
  return classes;
}

void AddTensor(const std::string& name, OutputPlan& plan) {
  if (std::find(plan.tensors.begin(), plan.tensors.end(), name) == plan.tensors.end()) {
    plan.tensors.push_back(name);
  }
}

// The items' tensors one after another, with the item dimension in front.
absl::StatusOr<HostTensor> JoinTensors(const PlannedOutput& output,
                                       const std::vector<models::Answer>& answers) {
  HostTensor joined;
  joined.name = output.spec.name;
  for (const models::Answer& answer : answers) {
    const HostTensor* tensor = answer.Find(output.spec.name);
    if (tensor == nullptr) {
      return absl::InternalError(absl::StrCat("the model gave no tensor ", output.spec.name));
    }
    if (&answer == &answers.front()) {
      joined.type = tensor->type;
      joined.shape = {static_cast<int64_t>(answers.size())};
      joined.shape.insert(joined.shape.end(), tensor->shape.begin(), tensor->shape.end());
      joined.data.reserve(tensor->data.size() * answers.size());
    } else if (!std::equal(tensor->shape.begin(), tensor->shape.end(), joined.shape.begin() + 1,
                           joined.shape.end())) {
      return absl::InternalError(absl::StrCat("items disagree in the shape of ", joined.name));
    }
    joined.data.insert(joined.data.end(), tensor->data.begin(), tensor->data.end());
    joined.strings.insert(joined.strings.end(), tensor->strings.begin(), tensor->strings.end());
  }
  return joined;
}

HostTensor JoinJson(const PlannedOutput& output, const std::vector<models::Answer>& answers) {
  HostTensor joined;
  joined.name = output.spec.name;
  joined.type = TensorType::kBytes;
  joined.shape = {static_cast<int64_t>(answers.size())};
  for (const models::Answer& answer : answers) {
    joined.strings.push_back(output.kind == OutputKind::kEntities ? EntitiesJson(answer.entities)
                             : output.kind == OutputKind::kAnswer ? AnswerJson(answer.answers)
                                                                  : MasksJson(answer.masks));
  }
  return joined;
}

absl::StatusOr<HostTensor> JoinScores(const PlannedOutput& output, const models::ModelInfo& info,
                                      const std::vector<models::Answer>& answers) {
  const PlannedOutput logits_output{OutputKind::kTensor, {"logits", TensorType::kFp32, {}, true}};
  absl::StatusOr<HostTensor> logits = JoinTensors(logits_output, answers);
  if (!logits.ok()) return logits;
  if (output.kind == OutputKind::kProbabilities) {
    // Choices of one question exclude each other whatever the checkpoint says.
    const bool independent =
        info.problem_type == models::ProblemType::kMultiLabel && info.task != Task::kMultipleChoice;
    ToProbabilities(*logits, independent);
    logits->name = output.spec.name;
    return logits;
  }
  HostTensor labels;
  labels.name = output.spec.name;
  labels.type = TensorType::kBytes;
  labels.shape = {static_cast<int64_t>(answers.size())};
  for (const size_t id : HighestPerRow(*logits)) {
    if (id >= info.labels.size()) return absl::InternalError("more logits than labels");
    labels.strings.push_back(info.labels[id]);
  }
  return labels;
}

}  // namespace

absl::StatusOr<OutputPlan> PlanOutputs(const inference::ModelInferRequest& request,
                                       const models::ModelInfo& info, const ItemShape& shape,
                                       const std::string& pooling) {
  ASSIGN_OR_RETURN(std::vector<TensorSpec> specs, request.outputs_size() > 0
                                                      ? NamedOutputs(request, info, shape, pooling)
                                                      : DefaultOutputs(info, shape, pooling));
  OutputPlan plan;
  for (TensorSpec& spec : specs) {
    OutputKind kind = KindOf(spec.name, info.task);
    if (kind == OutputKind::kMaskRuns) {
      plan.masks = true;
      if (spec.type == TensorType::kBool) kind = OutputKind::kMaskPixels;
    }
    switch (kind) {
      case OutputKind::kTensor:
        AddTensor(spec.name, plan);
        break;
      case OutputKind::kProbabilities:
      case OutputKind::kLabel:
        AddTensor("logits", plan);
        break;
      default:
        plan.typed = true;
    }
    plan.per_token = plan.per_token || IsPerToken(spec.name, info.task);
    int classes = 0;
    if (request.outputs_size() > 0) {
      ASSIGN_OR_RETURN(
          const auto wanted,
          ClassesWanted(request.outputs(static_cast<int>(plan.outputs.size())), kind, info));
      classes = wanted;
    }
    plan.outputs.push_back({kind, std::move(spec), classes});
  }
  return plan;
}

double LeastAnswerBytes(const OutputPlan& plan, const ItemShape& shape) {
  double total = 0;
  for (const PlannedOutput& output : plan.outputs) {
    if (output.spec.type != TensorType::kFp32 || output.spec.shape.empty()) continue;
    double elements = static_cast<double>(shape.items);
    for (size_t i = 1; i < output.spec.shape.size(); ++i) {
      const int64_t extent = output.spec.shape[i];
      const bool of_output = shape.decoder_tokens > 0 && output.spec.name == "logits";
      const int64_t tokens = of_output ? shape.decoder_tokens : shape.tokens;
      const int64_t known = extent > 0 ? extent : plan.per_token && i == 1 ? tokens : 1;
      elements *= static_cast<double>(std::max<int64_t>(known, 1));
    }
    total += elements * sizeof(float);
  }
  return total;
}

absl::StatusOr<HostTensor> JoinOutput(const PlannedOutput& output, const models::ModelInfo& info,
                                      const std::vector<models::Answer>& answers) {
  if (output.classes > 0) {
    PlannedOutput scores = output;
    scores.classes = 0;
    const absl::StatusOr<HostTensor> joined = JoinOutput(scores, info, answers);
    if (!joined.ok()) return joined;
    return ToClasses(*joined, info.labels, output.classes);
  }
  switch (output.kind) {
    case OutputKind::kTensor:
      return JoinTensors(output, answers);
    case OutputKind::kProbabilities:
    case OutputKind::kLabel:
      return JoinScores(output, info, answers);
    case OutputKind::kEntities:
    case OutputKind::kAnswer:
    case OutputKind::kTop:
      return JoinJson(output, answers);
    case OutputKind::kTokenLogprobs:
      return JoinTokenLogprobs(output, answers);
    case OutputKind::kBoxes:
    case OutputKind::kDetectionScores:
    case OutputKind::kDetectionLabels:
    case OutputKind::kDetectionNames:
    case OutputKind::kMaskRuns:
    case OutputKind::kMaskPixels:
      return MakeDetectionOutput(output, answers.front());
    default:
      return JoinSequences(output, info, answers);
  }
}

}  // namespace longview::server
