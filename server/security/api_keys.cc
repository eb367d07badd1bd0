#include "server/security/api_keys.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "models/status_macros.h"
#include "server/errors.h"
#include "server/security/digest.h"

namespace longview::server {
namespace {

constexpr std::string_view kScheme = "bearer ";
constexpr std::string_view kMetricsPath = "/metrics";

// The token after the scheme, whose name has no case; "" if it is another one.
std::string_view BearerToken(std::string_view authorization) {
  const std::string_view scheme = authorization.substr(0, kScheme.size());
  if (!absl::EqualsIgnoreCase({scheme.data(), scheme.size()}, {kScheme.data(), kScheme.size()})) {
    return {};
  }
  std::string_view token = authorization.substr(kScheme.size());
  while (token.starts_with(' ')) token.remove_prefix(1);
  while (token.ends_with(' ')) token.remove_suffix(1);
  return token;
}

// Never 0, which is everybody's.
uint64_t SpaceOf(std::string_view name) {
  const Digest digest = Sha256(name);
  uint64_t space = 0;
  std::memcpy(&space, digest.data(), sizeof(space));
  return std::max<uint64_t>(space, 1);
}

bool IsLimit(const ClientLimits& limits) {
  return limits.max_inflight > 0 || limits.tokens_per_second > 0;
}

}  // namespace

ApiKeys::ApiKeys(KeySet keys, bool share_prefixes)
    : share_prefixes_(share_prefixes), keys_(std::move(keys)) {
  absl::MutexLock lock(&mutex_);
  UpdateClients();
}

void ApiKeys::Replace(KeySet keys) {
  absl::MutexLock lock(&mutex_);
  keys_ = std::move(keys);
  UpdateClients();
}

void ApiKeys::UpdateClients() {
  std::map<std::string, Client> clients;
  for (const auto& [name, limits] : keys_.limits()) {
    Client& client = clients[name];
    client.weight = limits.weight;
    client.cache_space = share_prefixes_ ? 0 : SpaceOf(name);
    const auto known = clients_.find(name);
    if (known != clients_.end()) client.quota = known->second.quota;
    if (client.quota != nullptr) {
      client.quota->SetLimits(limits);
    } else if (IsLimit(limits)) {
      client.quota = std::make_shared<ClientQuota>(name, limits);
    }
  }
  clients_ = std::move(clients);
}

absl::StatusOr<KeyClient> ApiKeys::Authenticate(std::string_view authorization) const {
  const std::string_view token = BearerToken(authorization);
  if (token.empty()) {
    return MakeError(absl::StatusCode::kUnauthenticated,
                     "a key is needed; send it as \"authorization: Bearer <key>\"",
                     {.reason = "MISSING_KEY"});
  }
  absl::ReaderMutexLock lock(&mutex_);
  if (const KeyHolder* holder = keys_.Find(token)) {
    const Client& client = clients_.at(holder->name);
    return KeyClient{holder->name, holder->roles, client.weight, client.cache_space, client.quota};
  }
  return MakeError(absl::StatusCode::kUnauthenticated, "the key is not one of this server's",
                   {.reason = "WRONG_KEY"});
}

bool ApiKeys::ClosesMetrics() const {
  absl::ReaderMutexLock lock(&mutex_);
  return keys_.names_metrics();
}

absl::Status ApiKeys::Admit(std::string_view authorization, CallInfo& info) const {
  Permission permission = PermissionOf(info.method);
  if (info.method == kMetricsPath && ClosesMetrics()) permission = Permission::kMetrics;
  if (permission == Permission::kOpen) return absl::OkStatus();
  ASSIGN_OR_RETURN(KeyClient client, Authenticate(authorization));
  info.client = std::move(client.name);
  info.keyed = true;
  info.weight = client.weight;
  info.cache_space = client.cache_space;
  info.quota = std::move(client.quota);
  RETURN_IF_ERROR(CheckPermission(permission, client.roles, info.client));
  if (!IsLimited(info.method)) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::shared_ptr<CallPermit> permit, CallPermit::Get(info.quota));
  info.permit = std::move(permit);
  return absl::OkStatus();
}

}  // namespace longview::server
