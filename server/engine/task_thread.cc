#include "server/engine/task_thread.h"

#include <exception>
#include <future>
#include <utility>

#include "server/scheduler/thread_loop.h"
#include "server/scheduler/without_lock.h"

namespace longview::server {

TaskThread::TaskThread() : thread_(StartThread([this] { Loop(); })) {}

TaskThread::~TaskThread() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
    changed_.Signal();
  }
  thread_.join();
}

void TaskThread::Add(Task task) {
  bool wake;
  {
    absl::MutexLock lock(&mutex_);
    tasks_.push_back(std::move(task));
    wake = std::exchange(idle_, false);
  }
  // Signalled after the lock, which the thread needs first; not at all if it is busy anyway.
  if (wake) changed_.Signal();
}

void TaskThread::Drain() {
  std::promise<void> reached;
  Add([&reached] { reached.set_value(); });
  reached.get_future().wait();
}

void TaskThread::Loop() {
  absl::MutexLock lock(&mutex_);
  while (true) {
    while (!ending_ && tasks_.empty()) {
      idle_ = true;
      changed_.Wait(&mutex_);
    }
    idle_ = false;
    if (tasks_.empty()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    WithoutLock(&mutex_, [&task] {
      // A task that finds no memory ends alone.
      try {
        task();
      } catch (const std::exception&) {
      }
      task = nullptr;
    });
  }
}

}  // namespace longview::server
