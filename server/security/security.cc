#include "server/security/security.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"

namespace longview::server {

Security::Security(const SecurityOptions& options, Log& log)
    : options_(options), log_(log), watch_(options.interval) {}

absl::StatusOr<std::unique_ptr<Security>> Security::Open(const SecurityOptions& options, Log& log) {
  std::unique_ptr<Security> security(new Security(options, log));
  RETURN_IF_ERROR(security->ReadTls());
  RETURN_IF_ERROR(security->ReadKeys());
  security->watch_.Start();
  return security;
}

absl::StatusOr<KeySet> Security::ParseKeys(const FileContents& contents) const {
  absl::StatusOr<KeySet> keys = KeySet::Parse(contents[0]);
  if (keys.ok()) return keys;
  return absl::InvalidArgumentError(
      absl::StrCat("api_keys_file ", options_.api_keys_file, ": ", keys.status().message()));
}

absl::StatusOr<TlsMaterial> Security::ParseTls(const FileContents& contents) const {
  TlsMaterial material{contents[0], contents[1], contents.size() > 2 ? contents[2] : ""};
  absl::Status checked = CheckTlsMaterial(material);
  if (checked.ok() && contents.size() > 2 && material.client_ca.empty()) {
    checked = absl::InvalidArgumentError("tls_client_ca: not PEM certificates");
  }
  if (checked.ok()) return material;
  return absl::InvalidArgumentError(
      absl::StrCat(checked.message(), " (", options_.tls_cert, ", ", options_.tls_key,
                   options_.tls_client_ca.empty() ? "" : ", ", options_.tls_client_ca, ")"));
}

absl::Status Security::ReadKeys() {
  if (options_.api_keys_file.empty()) return absl::OkStatus();
  const absl::StatusOr<FileContents> contents =
      watch_.Add({options_.api_keys_file}, [this](const auto& changed) { KeysChanged(changed); });
  if (!contents.ok()) {
    return absl::UnavailableError(absl::StrCat("api_keys_file: ", contents.status().message()));
  }
  ASSIGN_OR_RETURN(KeySet keys, ParseKeys(*contents));
  keys_ = std::make_unique<ApiKeys>(std::move(keys), options_.share_prefixes);
  return absl::OkStatus();
}

absl::Status Security::ReadTls() {
  if (options_.tls_cert.empty()) return absl::OkStatus();
  std::vector<std::string> paths = {options_.tls_cert, options_.tls_key};
  if (!options_.tls_client_ca.empty()) paths.push_back(options_.tls_client_ca);
  const absl::StatusOr<FileContents> contents =
      watch_.Add(paths, [this](const auto& changed) { TlsChanged(changed); });
  if (!contents.ok()) {
    return absl::UnavailableError(absl::StrCat("TLS: ", contents.status().message()));
  }
  ASSIGN_OR_RETURN(TlsMaterial material, ParseTls(*contents));
  log_.Info("TLS", {{"certificate_ends", ExpiryOf(material)}});
  tls_ = std::make_unique<TlsSource>(std::move(material));
  return absl::OkStatus();
}

void Security::KeysChanged(const absl::StatusOr<FileContents>& contents) {
  absl::StatusOr<KeySet> keys =
      contents.ok() ? ParseKeys(*contents) : absl::StatusOr<KeySet>(contents.status());
  if (!keys.ok()) {
    const std::string problem(keys.status().message());
    return log_.Error("the new API keys are bad; the old ones stay", {{"error", problem}});
  }
  log_.Info("API keys re-read", {{"keys", static_cast<int64_t>(keys->size())}});
  keys_->Replace(*std::move(keys));
}

void Security::TlsChanged(const absl::StatusOr<FileContents>& contents) {
  absl::StatusOr<TlsMaterial> material =
      contents.ok() ? ParseTls(*contents) : absl::StatusOr<TlsMaterial>(contents.status());
  if (!material.ok()) {
    const std::string problem(material.status().message());
    return log_.Error("the new certificates are bad; the old ones stay", {{"error", problem}});
  }
  const std::string ends = ExpiryOf(*material);
  tls_->Replace(*std::move(material));
  log_.Info("certificates re-read", {{"certificate_ends", ends}});
}

}  // namespace longview::server
