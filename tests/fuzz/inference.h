// The work on an Open Inference Protocol request after parsing, the same for both forms.
#pragma once

#include <cstdint>

#include "inference/grpc_service.pb.h"

namespace longview::fuzz {

// Reads inputs, parameters and items as the server does for a model of a task that `kind` picks.
void ReadInference(const inference::ModelInferRequest& request, uint8_t kind);

}  // namespace longview::fuzz
