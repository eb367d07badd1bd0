// The model repository extension: index, load, unload.
#pragma once

#include "server/api/context.h"

namespace longview::server {

inference::RepositoryIndexResponse MakeRepositoryIndex(const ModelStore& store, bool ready_only);

// INVALID_ARGUMENT for overrides ("config", "file:...") and unknown parameters; else as
// LoadByName and UnloadByName of model_service.h.
void RunRepositoryLoad(ApiContext& context, const CallInfo& info,
                       const inference::RepositoryModelLoadRequest& request,
                       Reply<inference::RepositoryModelLoadResponse> reply);
void RunRepositoryUnload(ApiContext& context, const CallInfo& info,
                         const inference::RepositoryModelUnloadRequest& request,
                         Reply<inference::RepositoryModelUnloadResponse> reply);

}  // namespace longview::server
