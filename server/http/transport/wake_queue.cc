#include "server/http/transport/wake_queue.h"

#include <utility>

#include "boost/asio/post.hpp"

namespace longview::server {

void WakeQueue::Add(Task task) {
  {
    absl::MutexLock lock(&mutex_);
    tasks_.push_back(std::move(task));
    if (std::exchange(posted_, true)) return;
  }
  boost::asio::post(context_, [self = shared_from_this()] { self->Run(); });
}

void WakeQueue::Run() {
  std::vector<Task> tasks;
  {
    absl::MutexLock lock(&mutex_);
    // Cleared in the same critical section as the swap: a task added after it posts a run of its
    // own, so that no wake-up is lost.
    tasks.swap(tasks_);
    posted_ = false;
  }
  for (Task& task : tasks) task();
}

}  // namespace longview::server
