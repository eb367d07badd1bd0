// Whether anybody still waits for what a thread prepares: work that takes long asks between its
// steps and ends with CANCELLED.
#pragma once

#include <atomic>

#include "absl/status/status.h"

namespace longview::models {

// While it lives, what the calling thread prepares stops once `stop` is set, by any thread. Scopes
// nest; the inner one counts.
class StopScope {
 public:
  // Borrowed; null = nothing stops.
  explicit StopScope(const std::atomic<bool>* stop);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

 private:
  const std::atomic<bool>* const before_;
};

// The flag of the thread's scope, for libraries that look at it themselves; null without one.
const std::atomic<bool>* StopFlag();

// CANCELLED once the flag is set.
absl::Status CheckStop();

}  // namespace longview::models
