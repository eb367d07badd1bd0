// Gives memory back to the system after a burst.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>

namespace longview::server {

// The allocator keeps what was freed: after a burst of calls that may be hundreds of megabytes,
// which a pod's limit and its neighbours would miss for good. Whenever the server has been idle
// for two looks in a row and the allocator holds more than `keep_bytes` unused, they go back to
// the system. Never while work runs: the pages would be faulted in again at once.
// Owns a thread that looks once a second; the destructor joins it. Thread-safe.
class MemoryKeeper {
 public:
  // `idle` is called on the keeper's thread; must not block.
  explicit MemoryKeeper(std::function<bool()> idle, size_t keep_bytes = 32u << 20);
  ~MemoryKeeper();

 private:
  void Run();

  const std::function<bool()> idle_;
  const size_t keep_bytes_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace longview::server
