// The model calls of clients: listing, readiness, loading and unloading.
#pragma once

#include "longview/v1/models.pb.h"
#include "server/api/calls/context.h"

namespace longview::server {

longview::v1::Model DescribeModel(const ModelStatus& status);

// "READY", "LOADING", "UNAVAILABLE".
std::string StateName(ModelState state);

// The store's entry. NOT_FOUND lists the names there are; `version` may be "".
absl::StatusOr<ModelStatus> FindStatus(const ModelStore& store, std::string_view name,
                                       std::string_view version);

// Load and Unload of both APIs: PERMISSION_DENIED without model control. `reply` gets
// the model as it is afterwards, once the audit line is written.
void LoadByName(ApiContext& context, const CallInfo& info, std::string_view name,
                Reply<ModelStatus> reply);
void UnloadByName(ApiContext& context, const CallInfo& info, std::string_view name,
                  Reply<ModelStatus> reply);

// The `properties` of ModelMetadata and `parameters` of ModelConfig: task and limits, in
// order of name.
std::vector<std::pair<std::string, std::string>> Properties(const models::ModelInfo& info,
                                                            const ApiOptions& options);

}  // namespace longview::server
