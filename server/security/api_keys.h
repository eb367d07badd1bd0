// Who calls, by the key that a request brings.
#pragma once

#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/security/key_set.h"

namespace longview::server {

// Thread-safe. The keys may be exchanged while calls come in; a call that was let in stays.
class ApiKeys {
 public:
  explicit ApiKeys(KeySet keys) : keys_(std::move(keys)) {}

  void Replace(KeySet keys);

  // `authorization`: the value of that header or metadata, "Bearer <key>"; "" if there is none.
  // The name of the key. UNAUTHENTICATED says how a key is sent and never repeats it.
  absl::StatusOr<std::string> Authenticate(std::string_view authorization) const;

 private:
  mutable absl::Mutex mutex_;
  KeySet keys_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace longview::server
