#include "server/http/transport/tls_context.h"

#include <openssl/ssl.h>

#include <string_view>

#include "boost/asio/buffer.hpp"

namespace longview::server {
namespace {

namespace asio = boost::asio;
using asio::ssl::context;

// Length-prefixed, as in the protocol.
constexpr std::string_view kProtocols = "\x08http/1.1";

// A client that offers only other protocols is served without one: its first line will tell.
int ChooseProtocol(SSL*, const unsigned char** chosen, unsigned char* chosen_size,
                   const unsigned char* offered, unsigned int offered_size, void*) {
  const auto* own = reinterpret_cast<const unsigned char*>(kProtocols.data());
  unsigned char* found = nullptr;
  const int result =
      SSL_select_next_proto(&found, chosen_size, own, kProtocols.size(), offered, offered_size);
  *chosen = found;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

asio::const_buffer Bytes(const std::string& text) { return asio::buffer(text); }

}  // namespace

std::shared_ptr<context> MakeTlsContext(const TlsMaterial& material) {
  auto tls = std::make_shared<context>(context::tls_server);
  SSL_CTX* const native = tls->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_alpn_select_cb(native, ChooseProtocol, nullptr);
  // Without it, clients that resume a session are refused when certificates are asked for.
  SSL_CTX_set_session_id_context(native, reinterpret_cast<const unsigned char*>("longview"), 8);
  boost::system::error_code error;
  tls->use_certificate_chain(Bytes(material.certificate_chain), error);
  if (!error) tls->use_private_key(Bytes(material.private_key), context::pem, error);
  if (!error && !material.client_ca.empty()) {
    tls->add_certificate_authority(Bytes(material.client_ca), error);
    tls->set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert);
  }
  return error ? nullptr : tls;
}

}  // namespace longview::server
