#include "server/api/api.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/api/models/model_service.h"
#include "server/errors.h"

namespace longview::server {
namespace {

using RepositoryParameters =
    google::protobuf::Map<std::string, inference::ModelRepositoryParameter>;

// `accepted`: the one name that may be given, without effect.
absl::Status CheckParameters(const RepositoryParameters& parameters, std::string_view accepted) {
  for (const auto& [name, value] : parameters) {
    if (name == accepted) continue;
    const bool overrides = name == "config" || absl::StartsWith(name, "file:");
    return BadField(absl::StrCat("parameter ", Quoted(name)),
                    overrides ? "models are loaded from --models as they are; overrides are refused"
                              : "unknown");
  }
  return absl::OkStatus();
}

absl::Status CheckRepository(const std::string& name) {
  if (name.empty()) return absl::OkStatus();
  return BadField("repository_name",
                  absl::StrCat(Quoted(name), "; there is one repository, its name is empty"));
}

template <typename Response>
Reply<ModelStatus> Empty(Reply<Response> reply) {
  return [reply = std::move(reply)](absl::StatusOr<ModelStatus> status) mutable {
    if (status.ok()) {
      reply(Response());
    } else {
      reply(status.status());
    }
  };
}

}  // namespace

inference::RepositoryIndexResponse Api::RepositoryIndex(bool ready_only) const {
  inference::RepositoryIndexResponse out;
  for (const ModelStatus& status : store().List()) {
    if (ready_only && status.state != ModelState::kReady) continue;
    auto* model = out.add_models();
    model->set_name(status.name);
    model->set_version(status.version);
    model->set_state(StateName(status.state));
    model->set_reason(status.reason);
  }
  return out;
}

void Api::RepositoryModelLoad(const CallInfo& info,
                              const inference::RepositoryModelLoadRequest& request,
                              Reply<inference::RepositoryModelLoadResponse> reply) {
  ApiContext& context = context_;
  absl::Status status = CheckRepository(request.repository_name());
  status.Update(CheckParameters(request.parameters(), ""));
  if (!status.ok()) return reply(status);
  LoadByName(context, info, request.model_name(), Empty(std::move(reply)));
}

void Api::RepositoryModelUnload(const CallInfo& info,
                                const inference::RepositoryModelUnloadRequest& request,
                                Reply<inference::RepositoryModelUnloadResponse> reply) {
  ApiContext& context = context_;
  absl::Status status = CheckRepository(request.repository_name());
  status.Update(CheckParameters(request.parameters(), "unload_dependents"));
  if (!status.ok()) return reply(status);
  UnloadByName(context, info, request.model_name(), Empty(std::move(reply)));
}

}  // namespace longview::server
