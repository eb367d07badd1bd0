// Keys and certificates of a server: read at the start, re-read when their files change.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/log/log.h"
#include "server/security/api_keys.h"
#include "server/security/file_watch.h"
#include "server/security/tls_material.h"

namespace longview::server {

// Paths, as the flags of these names; empty = off.
struct SecurityOptions {
  std::string tls_cert;
  std::string tls_key;
  std::string tls_client_ca;
  std::string api_keys_file;
  bool share_prefixes = false;  // Among keys.
  // A change takes effect after one to two of these.
  absl::Duration interval = absl::Milliseconds(500);
};

// Thread-safe once open. Outlives the transports that use it.
class Security {
 public:
  // Borrows the log. An error names flag, file and problem. A file that is bad later on changes
  // nothing: what was read before stays, and the log says why.
  static absl::StatusOr<std::unique_ptr<Security>> Open(const SecurityOptions& options, Log& log);

  const ApiKeys* keys() const { return keys_.get(); }  // Null: calls need no key.
  const TlsSource* tls() const { return tls_.get(); }  // Null: connections are plaintext.

 private:
  Security(const SecurityOptions& options, Log& log);

  absl::Status ReadKeys();
  absl::Status ReadTls();
  absl::StatusOr<KeySet> ParseKeys(const FileContents& contents) const;
  absl::StatusOr<TlsMaterial> ParseTls(const FileContents& contents) const;
  void KeysChanged(const absl::StatusOr<FileContents>& contents);
  void TlsChanged(const absl::StatusOr<FileContents>& contents);

  const SecurityOptions options_;
  Log& log_;
  std::unique_ptr<ApiKeys> keys_;
  std::unique_ptr<TlsSource> tls_;
  FileWatch watch_;  // Last: its thread ends before what it changes.
};

}  // namespace longview::server
