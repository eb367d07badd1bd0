// One thread that runs what it is given, in order.
//
// For replies that must not run where they were caused (inside the caller, or on a device's
// thread that has better things to do), and for loads.
// Thread-safe.
#pragma once

#include <deque>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

namespace longview::server {

class TaskThread {
 public:
  using Task = absl::AnyInvocable<void()>;

  TaskThread();
  // Runs what it still has, then joins. Tasks may add tasks until then.
  ~TaskThread();

  void Add(Task task);

  // Waits until all that was added before has run. Not to be called in a task.
  void Drain();

 private:
  void Loop();

  absl::Mutex mutex_;  // Guards the queue only; no task runs under it.
  absl::CondVar changed_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool idle_ ABSL_GUARDED_BY(mutex_) = false;  // Waits for a task.
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace longview::server
