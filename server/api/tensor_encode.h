// Output tensors of the Open Inference Protocol.
#pragma once

#include "inference/grpc_service.pb.h"
#include "models/model.h"

namespace longview::server {

// Appends one output, raw (little-endian, BYTES with uint32 lengths) or as typed contents.
void AppendOutput(const models::HostTensor& tensor, bool raw,
                  inference::ModelInferResponse& response);

}  // namespace longview::server
