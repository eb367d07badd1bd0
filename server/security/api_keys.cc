#include "server/security/api_keys.h"

#include <utility>

#include "absl/strings/match.h"
#include "server/errors.h"

namespace longview::server {
namespace {

constexpr std::string_view kScheme = "bearer ";

// What follows the scheme, whose name has no case; "" if it is another one.
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

}  // namespace

void ApiKeys::Replace(KeySet keys) {
  absl::MutexLock lock(&mutex_);
  keys_ = std::move(keys);
}

absl::StatusOr<std::string> ApiKeys::Authenticate(std::string_view authorization) const {
  const std::string_view token = BearerToken(authorization);
  if (token.empty()) {
    return MakeError(absl::StatusCode::kUnauthenticated,
                     "a key is needed; send it as \"authorization: Bearer <key>\"",
                     {.reason = "MISSING_KEY"});
  }
  absl::ReaderMutexLock lock(&mutex_);
  if (const std::string* name = keys_.Find(token)) return *name;
  return MakeError(absl::StatusCode::kUnauthenticated, "the key is not one of this server's",
                   {.reason = "WRONG_KEY"});
}

}  // namespace longview::server
