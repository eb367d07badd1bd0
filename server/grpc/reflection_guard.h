// Server reflection needs a key like any other call. Its service is the library's, so that it is
// refused where calls arrive.
#pragma once

#include <memory>

#include "grpcpp/support/server_interceptor.h"
#include "server/security/api_keys.h"

namespace longview::server {

// For ServerBuilder::experimental().SetInterceptorCreators. Borrows the keys.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> ReflectionGuard(
    const ApiKeys& keys);

}  // namespace longview::server
