// A lock that is given back for a while.
#pragma once

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace longview::server {

// Runs `body` without the mutex that the caller holds, and takes it again after that, also where
// `body` throws. Returns what `body` does.
template <typename Body>
auto WithoutLock(absl::Mutex* mutex, Body&& body)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  struct Relock {
    absl::Mutex& mutex;
    ~Relock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex.Lock(); }
  };
  mutex->Unlock();
  const Relock relock{*mutex};
  return std::forward<Body>(body)();
}

}  // namespace longview::server
