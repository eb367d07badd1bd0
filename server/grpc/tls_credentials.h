// gRPC over TLS with certificates that may be exchanged while the server runs.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "server/security/tls_material.h"

namespace longview::server {

// Asks the source at every new connection. With a client CA, clients must show a certificate it
// signed. The source, and the credentials too, outlive the server.
std::shared_ptr<grpc::ServerCredentials> TlsServerCredentials(const TlsSource& source);

}  // namespace longview::server
