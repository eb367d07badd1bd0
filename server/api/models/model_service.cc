#include "server/api/models/model_service.h"

#include "models/status_macros.h"
#include "server/api/api.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "server/errors.h"
#include "server/store/model_errors.h"

namespace longview::server {
namespace {

absl::Status CheckControl(const ApiContext& context, std::string_view name) {
  if (!context.options.allow_model_control) {
    return MakeError(absl::StatusCode::kPermissionDenied,
                     "loading and unloading is off; start the server with --allow_model_control",
                     {.reason = "MODEL_CONTROL_OFF"});
  }
  if (name.empty()) return BadField("model", "empty; a name is needed");
  return absl::OkStatus();
}

// Writes the audit line before it passes the outcome on. `action`: static storage.
Reply<ModelStatus> Audited(ApiContext& context, const CallInfo& info, std::string_view action,
                           std::string_view name, Reply<ModelStatus> reply) {
  return [&context, info, action, name = std::string(name),
          reply = std::move(reply)](absl::StatusOr<ModelStatus> outcome) mutable {
    context.recorder.ModelControl(info, action, name, outcome.status());
    reply(std::move(outcome));
  };
}

}  // namespace

longview::v1::Model DescribeModel(const ModelStatus& status) {
  longview::v1::Model out;
  out.set_name(status.name);
  out.set_version(status.version);
  out.set_state(StateName(status.state));
  out.set_reason(status.reason);
  if (status.handle == nullptr) return out;
  const models::ModelInfo& info = status.handle->model->info();
  out.set_task(std::string(models::TaskName(info.task)));
  for (const models::Task task : info.tasks) out.add_tasks(std::string(models::TaskName(task)));
  out.set_family(info.family);
  out.mutable_labels()->Add(info.labels.begin(), info.labels.end());
  out.set_max_tokens(info.max_tokens);
  out.set_max_pixels(static_cast<int32_t>(
      std::min<int64_t>(info.max_pixels, std::numeric_limits<int32_t>::max())));
  out.set_dtype(info.dtype);
  out.set_device(info.device);
  out.set_parameters(info.parameters);
  out.set_memory_bytes(info.memory_bytes);
  return out;
}

std::string StateName(ModelState state) {
  switch (state) {
    case ModelState::kReady:
      return "READY";
    case ModelState::kLoading:
      return "LOADING";
    case ModelState::kUnavailable:
      break;
  }
  return "UNAVAILABLE";
}

absl::StatusOr<ModelStatus> FindStatus(const ModelStore& store, std::string_view name,
                                       std::string_view version) {
  const std::string served = store.NameOf(name);
  std::vector<ModelStatus> all = store.List();
  for (ModelStatus& status : all) {
    if (status.name != served) continue;
    if (version.empty() || version == status.version) return std::move(status);
    return VersionNotFound(name, status.version, version);
  }
  std::vector<std::string> names;
  for (const ModelStatus& status : all) names.push_back(status.name);
  return ModelNotFound(name, names);
}

void LoadByName(ApiContext& context, const CallInfo& info, std::string_view name,
                Reply<ModelStatus> reply) {
  Reply<ModelStatus> done = Audited(context, info, "load", name, std::move(reply));
  if (absl::Status status = CheckControl(context, name); !status.ok()) return done(status);
  const std::string model(name);
  context.store.Load(model, [&context, model, done = std::move(done)](absl::Status status) mutable {
    if (!status.ok()) return done(status);
    done(FindStatus(context.store, model, ""));
  });
}

void UnloadByName(ApiContext& context, const CallInfo& info, std::string_view name,
                  Reply<ModelStatus> reply) {
  Reply<ModelStatus> done = Audited(context, info, "unload", name, std::move(reply));
  if (absl::Status status = CheckControl(context, name); !status.ok()) return done(status);
  const std::string model(name);
  context.store.Unload(model,
                       [&context, model, done = std::move(done)](absl::Status status) mutable {
                         if (!status.ok()) return done(status);
                         done(FindStatus(context.store, model, ""));
                       });
}

std::vector<std::pair<std::string, std::string>> Properties(const models::ModelInfo& info,
                                                            const ApiOptions& options) {
  const std::string tasks = absl::StrJoin(info.tasks, ",", [](std::string* out, models::Task task) {
    *out += std::string(models::TaskName(task));
  });
  return {{"device", info.device},
          {"dtype", info.dtype},
          {"family", info.family},
          {"max_items", absl::StrCat(options.max_items)},
          {"max_pixels", absl::StrCat(info.max_pixels)},
          {"max_tokens", absl::StrCat(info.max_tokens)},
          {"parameters", absl::StrFormat("%.0f", info.parameters)},
          {"task", std::string(models::TaskName(info.task))},
          {"tasks", tasks}};
}

absl::StatusOr<longview::v1::ListModelsResponse> Api::ListModels() const {
  longview::v1::ListModelsResponse out;
  for (const ModelStatus& status : store().List()) *out.add_models() = DescribeModel(status);
  return out;
}

absl::StatusOr<longview::v1::Model> Api::GetModel(
    const longview::v1::GetModelRequest& request) const {
  ASSIGN_OR_RETURN(const auto status, FindStatus(store(), request.model(), request.version()));
  return DescribeModel(status);
}

namespace {

Reply<ModelStatus> Described(Reply<longview::v1::Model> reply) {
  return [reply = std::move(reply)](absl::StatusOr<ModelStatus> status) mutable {
    if (status.ok()) {
      reply(DescribeModel(*status));
    } else {
      reply(status.status());
    }
  };
}

}  // namespace

void Api::LoadModel(const CallInfo& info, const longview::v1::LoadModelRequest& request,
                    Reply<longview::v1::Model> reply) {
  LoadByName(context_, info, request.model(), Described(std::move(reply)));
}

void Api::UnloadModel(const CallInfo& info, const longview::v1::UnloadModelRequest& request,
                      Reply<longview::v1::Model> reply) {
  UnloadByName(context_, info, request.model(), Described(std::move(reply)));
}

absl::StatusOr<bool> Api::ModelReady(std::string_view name, std::string_view version) const {
  ASSIGN_OR_RETURN(const auto status, FindStatus(store(), name, version));
  return status.state == ModelState::kReady;
}

absl::StatusOr<inference::ModelStatisticsResponse> Api::ModelStatistics(
    std::string_view name, std::string_view version) const {
  inference::ModelStatisticsResponse out;
  if (!name.empty()) {
    ASSIGN_OR_RETURN(const auto model, store().Find(name, version));
    *out.add_model_stats() = context_.statistics.Get(model->name, model->version);
    return out;
  }
  for (const ModelStatus& status : store().List()) {
    if (status.state != ModelState::kReady) continue;
    *out.add_model_stats() = context_.statistics.Get(status.name, status.version);
  }
  return out;
}

}  // namespace longview::server
