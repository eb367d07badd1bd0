// SIGTERM, SIGINT, SIGHUP and events of other threads, for the one thread that decides when to
// leave.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/scheduler/steady_cond_var.h"

namespace longview::server {

struct Event {
  enum class Kind { kTerminate, kInterrupt, kHangUp, kReady, kFailed };
  Kind kind;
  std::string detail;  // kFailed: what failed.
};

// Blocks the signals in the calling thread and takes them on a thread of its own. Construct
// first thing in main, before any thread exists, so that all inherit the mask.
// Post is thread-safe; Wait belongs to one thread.
class EventQueue {
 public:
  EventQueue();
  ~EventQueue();

  void Post(Event event);
  // The next event, or nothing at `deadline`.
  std::optional<Event> Wait(absl::Time deadline);

  // Whether the process was started to outlive its terminal (nohup).
  bool hang_up_ignored() const { return hang_up_ignored_; }

  // From here on the next signal but SIGHUP ends the process at once.
  void ExitOnNextSignal();

 private:
  void TakeSignals();

  const bool hang_up_ignored_;
  absl::Mutex mutex_;
  SteadyCondVar changed_;
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
  bool exit_on_signal_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace longview::server
