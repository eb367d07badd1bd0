// The names in an inference request that its answers repeat, without parsing it.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include "inference/grpc_service.pb.h"

namespace longview::server {

// The id and the model's name of the ModelInferRequest in `bytes`, which stay as they are; what is
// not there, or longer than 1 KiB, is empty.
inference::ModelInferRequest NamesOf(grpc::ByteBuffer& bytes);

}  // namespace longview::server
