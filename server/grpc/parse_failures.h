// Requests that are no protobuf of their type answer INTERNAL, as gRPC's other server APIs do;
// the callback API of gRPC 1.51 would answer UNIMPLEMENTED.
#pragma once

#include <memory>
#include <vector>

#include "grpcpp/support/server_interceptor.h"

namespace longview::server {

// For ServerBuilder::experimental().SetInterceptorCreators.
std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>>
ParseFailureInterceptors();

}  // namespace longview::server
