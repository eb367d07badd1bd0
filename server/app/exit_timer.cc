#include "server/app/exit_timer.h"

#include <unistd.h>

#include <algorithm>

#include "server/scheduler/steady_clock.h"
#include "server/scheduler/thread_loop.h"

namespace longview::server {

ExitTimer::ExitTimer() : thread_(StartThread([this] { Run(); })) {}

ExitTimer::~ExitTimer() {
  {
    std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void ExitTimer::EndAt(absl::Time at, int status) {
  {
    std::lock_guard lock(mutex_);
    if (at >= at_) return;
    at_ = at;
    status_ = status;
  }
  changed_.notify_one();
}

void ExitTimer::Run() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    const absl::Duration left = std::min(at_ - SteadyNow(), absl::Hours(1));
    if (left <= absl::ZeroDuration()) {
      static constexpr char kText[] =
          "longview-server: a model did not come back in time, leaving without it\n";
      (void)!write(STDERR_FILENO, kText, sizeof(kText) - 1);
      _exit(status_);
    }
    changed_.wait_for(lock, absl::ToChronoNanoseconds(left));
  }
}

}  // namespace longview::server
