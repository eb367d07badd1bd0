// Hands small tasks to an event loop together. A step of a generator wakes every connection that
// streams: posted one by one, each would take the loop's lock and most of them wake a thread.
//
// Thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "boost/asio/io_context.hpp"

namespace longview::server {

class WakeQueue : public std::enable_shared_from_this<WakeQueue> {
 public:
  using Task = absl::AnyInvocable<void()>;

  // Whoever adds a task keeps the context alive until Add returns.
  explicit WakeQueue(boost::asio::io_context& context) : context_(context) {}

  // Runs `task` on a thread of the loop, soon. Tasks must not block; they may run side by side.
  void Add(Task task);

 private:
  void Run();

  boost::asio::io_context& context_;
  absl::Mutex mutex_;  // No task runs under it.
  std::vector<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool posted_ ABSL_GUARDED_BY(mutex_) = false;  // The loop will come for them.
};

}  // namespace longview::server
