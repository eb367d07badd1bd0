#include "server/app/memory_keeper.h"

#include <malloc.h>

#include <chrono>
#include <utility>

namespace longview::server {

MemoryKeeper::MemoryKeeper(std::function<bool()> idle, size_t keep_bytes)
    : idle_(std::move(idle)), keep_bytes_(keep_bytes), thread_([this] { Run(); }) {}

MemoryKeeper::~MemoryKeeper() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stop_.notify_one();
  thread_.join();
}

void MemoryKeeper::Run() {
  bool was_idle = false;
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, std::chrono::seconds(1), [this] { return stopped_; })) {
    const bool is_idle = idle_();
    if (is_idle && was_idle && mallinfo2().fordblks > keep_bytes_) malloc_trim(0);
    was_idle = is_idle;
  }
}

}  // namespace longview::server
