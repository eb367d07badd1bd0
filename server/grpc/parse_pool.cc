#include "server/grpc/parse_pool.h"

#include <utility>

#include "server/scheduler/thread_loop.h"

namespace longview::server {

ParsePool::ParsePool(int threads) {
  for (int i = 0; i < threads; ++i) threads_.push_back(StartThread([this] { Work(); }));
}

ParsePool::~ParsePool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ParsePool::Run(absl::AnyInvocable<void()> task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void ParsePool::Work() {
  while (true) {
    absl::AnyInvocable<void()> task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace longview::server
