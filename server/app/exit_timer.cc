#include "server/app/exit_timer.h"

#include <unistd.h>

#include <algorithm>

#include "server/scheduler/steady_clock.h"
#include "server/scheduler/thread_loop.h"

namespace longview::server {

ExitTimer::ExitTimer() : thread_(StartThread([this] { Run(); })) {}

ExitTimer::~ExitTimer() {
  {
    absl::MutexLock lock(&mutex_);
    over_ = true;
  }
  changed_.Signal();
  thread_.join();
}

void ExitTimer::EndAt(absl::Time at, int status) {
  {
    absl::MutexLock lock(&mutex_);
    if (at >= at_) return;
    at_ = at;
    status_ = status;
  }
  changed_.Signal();
}

void ExitTimer::Run() {
  absl::MutexLock lock(&mutex_);
  while (!over_) {
    const absl::Duration left = std::min(at_ - SteadyNow(), absl::Hours(1));
    if (left <= absl::ZeroDuration()) {
      static constexpr char kText[] =
          "longview-server: a model did not come back in time, leaving without it\n";
      // No allocation and no destructors: other threads may hang with any lock held.
      (void)!write(STDERR_FILENO, kText, sizeof(kText) - 1);
      _exit(status_);
    }
    changed_.WaitFor(&mutex_, left);
  }
}

}  // namespace longview::server
