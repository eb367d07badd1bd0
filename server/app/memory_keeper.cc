#include "server/app/memory_keeper.h"

#include <malloc.h>

#include <utility>

#include "server/scheduler/steady_clock.h"
#include "server/scheduler/thread_loop.h"

namespace longview::server {

MemoryKeeper::MemoryKeeper(std::function<bool()> idle, size_t keep_bytes, absl::Duration interval,
                           absl::Duration look)
    : idle_(std::move(idle)),
      keep_bytes_(keep_bytes),
      interval_(interval),
      look_(look),
      thread_(StartThread([this] { Run(); })) {}

MemoryKeeper::~MemoryKeeper() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  stop_.Signal();
  thread_.join();
}

void MemoryKeeper::Run() {
  bool was_idle = false;
  bool given_back = false;  // Memory was given back since work last ran.
  absl::Time last = SteadyNow();
  absl::MutexLock lock(&mutex_);
  while (!stop_.AwaitFor(&mutex_, absl::Condition(&stopped_), look_)) {
    const bool is_idle = idle_();
    given_back = given_back && is_idle;
    const bool rests = is_idle && was_idle && !given_back;
    // Pages that were given back still count as unused: looking once more finds nothing new.
    if ((rests || SteadyNow() - last >= interval_) && mallinfo2().fordblks > keep_bytes_) {
      malloc_trim(0);
      given_back = is_idle;
      last = SteadyNow();
    }
    was_idle = is_idle;
  }
}

}  // namespace longview::server
