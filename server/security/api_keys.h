// Identifies the caller by the key that a request brings, and checks what that key allows.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/call.h"
#include "server/security/client_quota.h"
#include "server/security/key_set.h"

namespace longview::server {

// The client that a key stands for.
struct KeyClient {
  std::string name;
  Roles roles;
  double weight = 1;
  uint64_t cache_space = 0;
  std::shared_ptr<ClientQuota> quota;  // Limits of the key's name; null: none.
};

// Thread-safe. The keys may be exchanged while calls come in; a call that was let in stays, and
// what a name has under way and owes counts on under the new limits.
class ApiKeys {
 public:
  // `share_prefixes`: clients find what others' prompts left in the cache.
  explicit ApiKeys(KeySet keys, bool share_prefixes = false);

  void Replace(KeySet keys);

  // `authorization`: the value of that header or metadata, "Bearer <key>"; "" if there is none.
  // UNAUTHENTICATED says how a key is sent and never repeats it.
  absl::StatusOr<KeyClient> Authenticate(std::string_view authorization) const;

  // The whole decision about a call whose `method` is known: key, role and limits. Fills in who
  // calls. UNAUTHENTICATED, PERMISSION_DENIED (ROLE_MISSING), or RESOURCE_EXHAUSTED with a retry
  // delay. Calls that need no key pass as they are.
  absl::Status Admit(std::string_view authorization, CallInfo& info) const;

 private:
  struct Client {
    double weight = 1;
    uint64_t cache_space = 0;
    std::shared_ptr<ClientQuota> quota;
  };
  // Whether /metrics asks for a key (KeySet::names_metrics).
  bool ClosesMetrics() const;
  void UpdateClients() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const bool share_prefixes_;
  mutable absl::Mutex mutex_;
  KeySet keys_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Client> clients_ ABSL_GUARDED_BY(mutex_);  // By name.
};

}  // namespace longview::server
