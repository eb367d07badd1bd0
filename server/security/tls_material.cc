#include "server/security/tls_material.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <string_view>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"

namespace longview::server {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using PrivateKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Bio Reader(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free);
}

Certificate NextCertificate(BIO* reader) {
  return Certificate(PEM_read_bio_X509(reader, nullptr, nullptr, nullptr), X509_free);
}

// Asked for a passphrase: there is none. Without it OpenSSL would ask on the terminal.
int NoPassphrase(char*, int, int, void*) { return -1; }

PrivateKey ReadKey(std::string_view text) {
  return PrivateKey(PEM_read_bio_PrivateKey(Reader(text).get(), nullptr, NoPassphrase, nullptr),
                    EVP_PKEY_free);
}

// All certificates of a text parse, and there is one at least.
bool AreCertificates(std::string_view text) {
  ERR_clear_error();
  const Bio reader = Reader(text);
  int count = 0;
  while (NextCertificate(reader.get()) != nullptr) ++count;
  // The end of the text reads as "no start line"; anything else is a damaged certificate.
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  return count > 0 && at_end;
}

// OpenSSL refuses some that parse: keys that are too short, signatures that are too weak.
absl::Status CheckAccepted(X509* certificate, EVP_PKEY* key) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_server_method()),
                                                                  SSL_CTX_free);
  ERR_clear_error();
  const bool accepted = SSL_CTX_use_certificate(context.get(), certificate) == 1 &&
                        SSL_CTX_use_PrivateKey(context.get(), key) == 1;
  const char* why = accepted ? nullptr : ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  if (accepted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("tls_cert: TLS does not accept it: ", why == nullptr ? "unknown" : why));
}

}  // namespace

absl::Status CheckTlsMaterial(const TlsMaterial& material) {
  if (!AreCertificates(material.certificate_chain)) {
    return absl::InvalidArgumentError("tls_cert: not a chain of PEM certificates");
  }
  const PrivateKey key = ReadKey(material.private_key);
  ERR_clear_error();
  if (key == nullptr) {
    return absl::InvalidArgumentError("tls_key: not a PEM private key without passphrase");
  }
  const Certificate own = NextCertificate(Reader(material.certificate_chain).get());
  const bool matches = X509_check_private_key(own.get(), key.get()) == 1;
  ERR_clear_error();
  if (!matches) {
    return absl::InvalidArgumentError("tls_key: not the key of the first certificate in tls_cert");
  }
  RETURN_IF_ERROR(CheckAccepted(own.get(), key.get()));
  if (!material.client_ca.empty() && !AreCertificates(material.client_ca)) {
    return absl::InvalidArgumentError("tls_client_ca: not PEM certificates");
  }
  return absl::OkStatus();
}

std::string ExpiryOf(const TlsMaterial& material) {
  const Certificate own = NextCertificate(Reader(material.certificate_chain).get());
  const Bio text(BIO_new(BIO_s_mem()), BIO_free);
  ASN1_TIME_print(text.get(), X509_get0_notAfter(own.get()));
  char* data = nullptr;
  const auto size = BIO_get_mem_data(text.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

}  // namespace longview::server
