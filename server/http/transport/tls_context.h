// HTTP's side of TLS: what asio needs of a certificate.
#pragma once

#include <memory>

#include "boost/asio/ssl/context.hpp"
#include "server/security/tls_material.h"

namespace longview::server {

// TLS 1.2 and above, ALPN http/1.1; with a client CA, clients must show a certificate it signed.
// Null if OpenSSL refuses the material, which it should not once that is checked.
std::shared_ptr<boost::asio::ssl::context> MakeTlsContext(const TlsMaterial& material);

}  // namespace longview::server
