// The end of the process at a certain time, whatever its other threads are at.
#pragma once

#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/scheduler/steady_cond_var.h"

namespace longview::server {

// A model that is being read, or a layer that never comes back, cannot be stopped; a server that
// leaves does not wait for it longer than it was told. Owns a thread; the destructor, which means
// that the end came by itself, joins it. Thread-safe.
class ExitTimer {
 public:
  ExitTimer();
  ~ExitTimer();

  // From here on the process ends with `status` at `at` on the steady clock (SteadyNow); the
  // earliest time that was ever given counts.
  void EndAt(absl::Time at, int status);

 private:
  void Run();

  absl::Mutex mutex_;
  SteadyCondVar changed_;
  absl::Time at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  int status_ ABSL_GUARDED_BY(mutex_) = 0;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace longview::server
