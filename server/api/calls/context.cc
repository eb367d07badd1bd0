#include "server/api/calls/context.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/status_macros.h"
#include "server/errors.h"

namespace longview::server {
namespace {

// The call that is for a task, over gRPC and HTTP.
std::string_view CallOf(models::Task task) {
  switch (task) {
    case models::Task::kTextClassification:
    case models::Task::kTextPairClassification:
      return "Classify, /v1/classify";
    case models::Task::kTokenClassification:
      return "ClassifyTokens, /v1/classify-tokens";
    case models::Task::kQuestionAnswering:
      return "AnswerQuestion, /v1/answer";
    case models::Task::kFillMask:
      return "FillMask, /v1/fill-mask";
    case models::Task::kEmbedding:
      return "Embed, /v1/embeddings";
    case models::Task::kRerank:
      return "Rerank, /v1/rerank";
    case models::Task::kTextGeneration:
    case models::Task::kText2TextGeneration:
      return "Generate, /v1/completions";
    case models::Task::kImageClassification:
      return "ClassifyImage, /v1/classify with image";
    case models::Task::kObjectDetection:
      return "DetectObjects, /v1/detect";
    case models::Task::kImageFeatures:
      return "ExtractFeatures, /v1/features";
    case models::Task::kMultipleChoice:
    case models::Task::kMultiVector:
      break;
  }
  return "ModelInfer, /v2";
}

std::string TaskList(const models::ModelInfo& info) {
  return absl::StrJoin(info.tasks, ", ", [](std::string* out, models::Task task) {
    absl::StrAppend(out, std::string(models::TaskName(task)), " (", std::string(CallOf(task)), ")");
  });
}

// "; a, b do this", or nothing if no loaded model has the task.
std::string OthersWith(const ModelStore& store, models::Task task) {
  std::vector<std::string> names;
  for (const ModelStatus& status : store.List()) {
    if (status.handle == nullptr || !HasTask(status.handle->model->info(), task)) continue;
    names.push_back(status.name);
  }
  if (names.empty()) return "";
  return absl::StrCat("; for this ask ", absl::StrJoin(names, " or "));
}

absl::Status CheckAccepting(ApiContext& context, std::string_view model) {
  if (context.lifecycle.accepting()) return absl::OkStatus();
  context.metrics.Rejected(context.recorder.Labels(model), RejectReason::kDraining);
  return ShuttingDownError();
}

}  // namespace

absl::StatusOr<ModelHandle> FindModel(ApiContext& context, std::string_view name,
                                      std::string_view version) {
  RETURN_IF_ERROR(CheckAccepting(context, name));
  return context.store.Find(name, version);
}

absl::StatusOr<ModelHandle> FindModelForTask(ApiContext& context, std::string_view name,
                                             std::string_view version, models::Task task) {
  RETURN_IF_ERROR(CheckAccepting(context, name));
  absl::StatusOr<ModelHandle> model = name.empty() ? context.store.FindForTask(name, version, task)
                                                   : context.store.Find(name, version);
  if (!model.ok()) return model;
  const models::ModelInfo& info = (*model)->model->info();
  const models::Task served = task == models::Task::kTextClassification
                                  ? ClassificationTask(info, /*has_pair=*/false)
                                  : task;
  if (!HasTask(info, served)) {
    return MakeError(absl::StatusCode::kUnimplemented,
                     absl::StrCat("model ", Quoted((*model)->name), " lacks the task ",
                                  std::string(models::TaskName(task)), "; it does ", TaskList(info),
                                  OthersWith(context.store, task)),
                     {.reason = "TASK_NOT_SUPPORTED", .param = "model"});
  }
  return model;
}

absl::StatusOr<ModelHandle> FindOnlyModel(ApiContext& context, std::string_view name,
                                          std::string_view version,
                                          absl::FunctionRef<bool(const models::ModelInfo&)> fit) {
  if (!name.empty()) return FindModel(context, name, version);
  std::vector<std::string> loaded;
  bool loading = false;
  for (const ModelStatus& status : context.store.List()) {
    loading = loading || status.state == ModelState::kLoading;
    if (status.handle == nullptr || !fit(status.handle->model->info())) continue;
    loaded.push_back(status.name);
  }
  if (loaded.size() == 1) return FindModel(context, loaded.front(), version);
  if (loaded.empty() && loading) {
    return MakeError(
        absl::StatusCode::kUnavailable, "models are loading",
        {.reason = "MODEL_LOADING", .retry_after = absl::Seconds(1), .param = "model"});
  }
  if (loaded.empty()) {
    return MakeError(absl::StatusCode::kNotFound, "no loaded model can do this",
                     {.reason = "MODEL_NOT_FOUND", .param = "model"});
  }
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat("model: name one; these can do this: ", absl::StrJoin(loaded, ", ")),
      {.reason = "MODEL_AMBIGUOUS", .param = "model"});
}

bool HasTask(const models::ModelInfo& info, models::Task task) {
  return info.task == task ||
         std::find(info.tasks.begin(), info.tasks.end(), task) != info.tasks.end();
}

bool Generates(models::Task task) {
  return task == models::Task::kTextGeneration || task == models::Task::kText2TextGeneration;
}

models::Task ClassificationTask(const models::ModelInfo& info, bool has_pair) {
  const bool pairs = HasTask(info, models::Task::kTextPairClassification);
  const bool single = HasTask(info, models::Task::kTextClassification);
  return pairs && (has_pair || !single) ? models::Task::kTextPairClassification
                                        : models::Task::kTextClassification;
}

absl::Status BadField(std::string_view field, std::string_view problem) {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat(std::string(field), ": ", std::string(problem)),
                   {.reason = "INVALID_ARGUMENT", .param = std::string(field)});
}

absl::Status CheckAnswerSize(const ApiContext& context, size_t bytes) {
  if (bytes <= context.options.max_message_bytes) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat("the answer would take ", bytes, " bytes; max_message_bytes is ",
                                context.options.max_message_bytes,
                                "; send fewer items or ask for fewer outputs"),
                   {.reason = "ANSWER_TOO_LARGE"});
}

absl::Status WithParam(const absl::Status& status) {
  if (status.code() != absl::StatusCode::kInvalidArgument) return status;
  ErrorDetail detail = GetErrorDetail(status);
  const std::string message(status.message());
  const size_t end = message.find_first_not_of("abcdefghijklmnopqrstuvwxyz_.");
  if (!detail.param.empty() || end == 0 || end == std::string::npos || message[end] != ':') {
    return status;
  }
  detail.param = message.substr(0, end);
  return MakeError(status.code(), message, detail);
}

absl::Status Renamed(const absl::Status& status, FieldNames names) {
  const std::string message(status.message());
  for (const auto& [from, to] : names) {
    if (!message.starts_with(from) || message.substr(from.size(), 1) != ":") continue;
    ErrorDetail detail = GetErrorDetail(status);
    if (detail.param == from) detail.param = to;
    return MakeError(status.code(), std::string(to).append(message.substr(from.size())), detail);
  }
  return status;
}

absl::Status OfField(const absl::Status& status, std::string_view field) {
  const std::string_view pair = field == "text" ? "text_pair" : field;
  return WithParam(Renamed(status, {{"text", field}, {"text_pair", pair}, {"token_ids", field}}));
}

absl::Status OfElement(const absl::Status& status, std::string_view field, size_t index) {
  const absl::Status named = OfField(status, field);
  if (named.code() != absl::StatusCode::kInvalidArgument) return named;
  const std::string prefix = absl::StrCat(std::string(field), ": ");
  std::string message(named.message());
  if (message.starts_with(prefix)) message.erase(0, prefix.size());
  return MakeError(named.code(), absl::StrCat(std::string(field), "[", index, "]: ", message),
                   GetErrorDetail(named));
}

absl::Status Prefixed(std::string_view prefix, const absl::Status& status) {
  absl::Status out(status.code(), absl::StrCat(std::string(prefix), std::string(status.message())));
  status.ForEachPayload(
      [&out](absl::string_view url, const absl::Cord& payload) { out.SetPayload(url, payload); });
  return out;
}

}  // namespace longview::server
