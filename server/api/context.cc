#include "server/api/context.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/errors.h"

namespace longview::server {
namespace {

std::string TaskList(const models::ModelInfo& info) {
  return absl::StrJoin(info.tasks, ", ", [](std::string* out, models::Task task) {
    absl::StrAppend(out, std::string(models::TaskName(task)));
  });
}

absl::Status CheckAccepting(ApiContext& context, std::string_view model) {
  if (context.lifecycle.accepting()) return absl::OkStatus();
  context.metrics.Rejected(context.recorder.Labels(model), RejectReason::kDraining);
  return MakeError(absl::StatusCode::kUnavailable, "the server is shutting down",
                   {.reason = "SHUTTING_DOWN", .retry_after = absl::Seconds(1)});
}

}  // namespace

absl::StatusOr<ModelHandle> FindModel(ApiContext& context, std::string_view name,
                                      std::string_view version) {
  if (absl::Status status = CheckAccepting(context, name); !status.ok()) return status;
  return context.store.Find(name, version);
}

absl::StatusOr<ModelHandle> FindModelForTask(ApiContext& context, std::string_view name,
                                             std::string_view version, models::Task task) {
  if (absl::Status status = CheckAccepting(context, name); !status.ok()) return status;
  absl::StatusOr<ModelHandle> model = name.empty() ? context.store.FindForTask(name, version, task)
                                                   : context.store.Find(name, version);
  if (!model.ok()) return model;
  const models::ModelInfo& info = (*model)->model->info();
  const models::Task served = task == models::Task::kTextClassification
                                  ? ClassificationTask(info, /*has_pair=*/false)
                                  : task;
  if (!HasTask(info, served)) {
    return MakeError(
        absl::StatusCode::kUnimplemented,
        absl::StrCat("model ", Quoted((*model)->name), " lacks the task ",
                     std::string(models::TaskName(task)), "; it does ", TaskList(info)),
        {.reason = "TASK_NOT_SUPPORTED", .param = "model"});
  }
  return model;
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

absl::Status Prefixed(std::string_view prefix, const absl::Status& status) {
  absl::Status out(status.code(), absl::StrCat(std::string(prefix), std::string(status.message())));
  status.ForEachPayload(
      [&out](absl::string_view url, const absl::Cord& payload) { out.SetPayload(url, payload); });
  return out;
}

}  // namespace longview::server
