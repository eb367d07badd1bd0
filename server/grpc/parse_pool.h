// Where large messages are inflated and parsed, so that the threads that poll connections never do.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"

namespace longview::server {

// Thread-safe. Tasks run in the order they came; the destructor runs those that wait.
class ParsePool {
 public:
  explicit ParsePool(int threads);
  ~ParsePool();
  ParsePool(const ParsePool&) = delete;
  ParsePool& operator=(const ParsePool&) = delete;

  void Run(absl::AnyInvocable<void()> task);

 private:
  void Work();

  std::mutex mutex_;  // Guards all below.
  std::condition_variable changed_;
  std::deque<absl::AnyInvocable<void()>> tasks_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace longview::server
