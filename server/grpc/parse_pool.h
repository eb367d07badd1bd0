// Threads that inflate and parse large messages, so that those that poll connections never do.
#pragma once

#include <deque>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

namespace longview::server {

// Thread-safe. Tasks run in the order they came; the destructor runs those that wait.
class ParsePool {
 public:
  explicit ParsePool(int threads);
  ~ParsePool();
  ParsePool(const ParsePool&) = delete;
  ParsePool& operator=(const ParsePool&) = delete;

  void Run(absl::AnyInvocable<void()> task);

 private:
  void Work();
  // Whether there is something to do for a thread.
  bool HasNews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop_ || !tasks_.empty(); }

  absl::Mutex mutex_;
  std::deque<absl::AnyInvocable<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace longview::server
