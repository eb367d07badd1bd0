#include "server/grpc/parse_pool.h"

#include <utility>

#include "server/scheduler/thread_loop.h"

namespace longview::server {

ParsePool::ParsePool(int threads) {
  for (int i = 0; i < threads; ++i) threads_.push_back(StartThread([this] { Work(); }));
}

ParsePool::~ParsePool() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void ParsePool::Run(absl::AnyInvocable<void()> task) {
  absl::MutexLock lock(&mutex_);
  tasks_.push_back(std::move(task));
}

void ParsePool::Work() {
  while (true) {
    absl::AnyInvocable<void()> task;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &ParsePool::HasNews));
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace longview::server
