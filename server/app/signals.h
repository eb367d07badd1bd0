// SIGTERM, SIGINT, SIGHUP and events of other threads, for the one thread that decides when to
// leave.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/time/time.h"

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
  std::mutex mutex_;  // Guards what follows.
  std::condition_variable changed_;
  std::deque<Event> events_;
  bool exit_on_signal_ = false;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace longview::server
