// Answers of server reflection out of the descriptors that are compiled in.
#pragma once

#include <string>
#include <vector>

#include "grpc/reflection/v1/reflection.pb.h"

namespace longview::server {

// `services`: full names of the services of this server. NOT_FOUND and INVALID_ARGUMENT are errors
// within the answer. Thread-safe.
grpc::reflection::v1::ServerReflectionResponse AnswerReflection(
    const grpc::reflection::v1::ServerReflectionRequest& request,
    const std::vector<std::string>& services);

}  // namespace longview::server
