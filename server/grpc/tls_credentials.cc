#include "server/grpc/tls_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <string>
#include <utility>

namespace longview::server {
namespace {

// gRPC's C++ API offers fixed certificates, or files that it watches by itself and takes one by
// one, so that a new certificate may meet the old key. The C API asks at every connection.
class ReloadingCredentials final : public grpc::ServerCredentials {
 public:
  explicit ReloadingCredentials(const TlsSource& source) : source_(source) {
    const auto clients = source.Current()->client_ca.empty()
                             ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                             : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
    // Takes the options over.
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(clients, &Fetch, this));
  }
  ~ReloadingCredentials() override { grpc_server_credentials_release(credentials_); }

  // Keys are checked where calls are admitted, with and without TLS.
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  // The library calls it under a lock of its own.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<ReloadingCredentials*>(self)->FetchNext(config);
  }

  grpc_ssl_certificate_config_reload_status FetchNext(grpc_ssl_server_certificate_config** config) {
    std::shared_ptr<const TlsMaterial> material = source_.Current();
    if (material == given_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    given_ = std::move(material);
    const grpc_ssl_pem_key_cert_pair own = {given_->private_key.c_str(),
                                            given_->certificate_chain.c_str()};
    // gRPC 1.51 wants authorities even where clients are not asked; they have no effect then.
    const char* clients =
        given_->client_ca.empty() ? given_->certificate_chain.c_str() : given_->client_ca.c_str();
    *config = grpc_ssl_server_certificate_config_create(clients, &own, 1);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const TlsSource& source_;
  std::shared_ptr<const TlsMaterial> given_;  // The material in the library's hands.
  grpc_server_credentials* credentials_ = nullptr;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> TlsServerCredentials(const TlsSource& source) {
  return std::make_shared<ReloadingCredentials>(source);
}

}  // namespace longview::server
