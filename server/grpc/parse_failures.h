// Requests that are no protobuf of their type answer INTERNAL, as gRPC's other server APIs do;
// the callback API of gRPC 1.51 would answer UNIMPLEMENTED.
#pragma once

#include <memory>

#include "grpcpp/support/server_interceptor.h"

namespace longview::server {

// For ServerBuilder::experimental().SetInterceptorCreators.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> ParseFailures();

}  // namespace longview::server
