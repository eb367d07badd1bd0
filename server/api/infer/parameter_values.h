// Values of parameters of the Open Inference Protocol, which come as strings, numbers or booleans.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "inference/grpc_service.pb.h"

namespace longview::server {

// The value as a client wrote it, for messages.
std::string ValueText(const inference::InferParameter& value);

// Unset: it is none, also where it is written as a string.
std::optional<bool> AsBool(const inference::InferParameter& value);
std::optional<int64_t> AsInteger(const inference::InferParameter& value);

}  // namespace longview::server
