// Server and model metadata of the Open Inference Protocol.
#pragma once

#include "server/api/context.h"

namespace longview::server {

inference::ServerMetadataResponse MakeServerMetadata(const ApiOptions& options);
inference::ModelMetadataResponse MakeModelMetadata(const ServedModel& model,
                                                   const ApiOptions& options);
inference::ModelConfigResponse MakeModelConfig(const ServedModel& model, const ApiOptions& options);

}  // namespace longview::server
