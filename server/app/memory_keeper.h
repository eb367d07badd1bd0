// Gives memory back to the system after a burst.
#pragma once

#include <cstddef>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/scheduler/steady_cond_var.h"

namespace longview::server {

// The allocator keeps what was freed: after a burst of calls that may be hundreds of megabytes,
// which a pod's limit and its neighbours would miss for good, and beside calls that never pause,
// holes add up over hours. Where the allocator holds more than `keep_bytes` unused, they go back to
// the system once the server has been idle for two looks in a row, and otherwise no more often than
// every `interval`, since calls fault some of the pages in again.
// Owns a thread that looks every `look`; the destructor joins it. Thread-safe.
class MemoryKeeper {
 public:
  // `idle` is called on the keeper's thread; must not block.
  explicit MemoryKeeper(std::function<bool()> idle, size_t keep_bytes = 32u << 20,
                        absl::Duration interval = absl::Minutes(1),
                        absl::Duration look = absl::Seconds(1));
  ~MemoryKeeper();

 private:
  void Run();

  const std::function<bool()> idle_;
  const size_t keep_bytes_;
  const absl::Duration interval_;
  const absl::Duration look_;
  absl::Mutex mutex_;
  SteadyCondVar stop_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace longview::server
