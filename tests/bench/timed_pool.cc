#include "tests/bench/timed_pool.h"

#include <time.h>

#include <algorithm>
#include <chrono>

namespace longview::bench {

double ThreadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

TimedPool::TimedPool(int threads) : cpu_(threads) {
  for (int t = 1; t < threads; ++t) workers_.emplace_back([this, t] { Serve(t); });
}

TimedPool::~TimedPool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void TimedPool::Timed(kernels::ThreadBody body, void* context, int thread) const {
  const double start = ThreadSeconds();
  body(context, thread);
  cpu_[thread] = ThreadSeconds() - start;
}

void TimedPool::Run(kernels::ThreadBody body, void* context) const {
  const auto start = std::chrono::steady_clock::now();
  {
    std::lock_guard lock(mutex_);
    body_ = body;
    context_ = context;
    running_ = static_cast<int>(workers_.size());
    ++round_;
  }
  start_.notify_all();
  Timed(body, context, 0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return running_ == 0; });
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  regions_.push_back({wall.count(), *std::max_element(cpu_.begin(), cpu_.end())});
}

void TimedPool::Serve(int thread) {
  int seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    start_.wait(lock, [&] { return stop_ || round_ != seen; });
    if (stop_) return;
    seen = round_;
    const kernels::ThreadBody body = body_;
    void* context = context_;
    lock.unlock();
    Timed(body, context, thread);
    lock.lock();
    if (--running_ == 0) done_.notify_one();
  }
}

}  // namespace longview::bench
