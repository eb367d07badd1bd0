// Waits that end in time whatever the wall clock does.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/scheduler/steady_clock.h"

namespace longview::server {

// absl::CondVar whose timeouts are of the steady clock. Abseil 20220623 makes a time of the wall
// clock of every timeout (of WaitWithTimeout, AwaitWithTimeout and Notification alike), so that a
// step of that clock ends the wait at once or prolongs it by as much. The standard library waits on
// the steady clock. Thread-safe; signals need no lock.
class SteadyCondVar {
 public:
  // Releases the mutex while it waits. May return without a signal.
  void Wait(absl::Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Held held{*mutex};
    changed_.wait(held);
  }

  // Wait that lasts no longer than `timeout`.
  void WaitFor(absl::Mutex* mutex, absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Held held{*mutex};
    changed_.wait_for(held, absl::ToChronoNanoseconds(std::min(timeout, kLongest)));
  }

  // Waits until a signal finds the condition true, no longer than `timeout`; whether it is true.
  bool AwaitFor(absl::Mutex* mutex, const absl::Condition& condition, absl::Duration timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Held held{*mutex};
    const auto is_true = [&condition] { return condition.Eval(); };
    if (timeout < kLongest) {
      return changed_.wait_for(held, absl::ToChronoNanoseconds(timeout), is_true);
    }
    changed_.wait(held, is_true);
    return true;
  }

  // AwaitFor until `deadline`, a time of the steady clock (SteadyNow).
  bool AwaitUntil(absl::Mutex* mutex, const absl::Condition& condition, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return AwaitFor(mutex, condition, deadline - SteadyNow());
  }

  void Signal() { changed_.notify_one(); }
  void SignalAll() { changed_.notify_all(); }

 private:
  // Longer ones would overflow the clock, and are endless.
  static constexpr absl::Duration kLongest = absl::Hours(24 * 365);

  // A mutex that the caller holds, by the names that the standard library knows.
  struct Held {
    absl::Mutex& mutex;
    void lock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex.Lock(); }
    void unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex.Unlock(); }
  };

  std::condition_variable_any changed_;  // Waits on the steady clock.
};

}  // namespace longview::server
