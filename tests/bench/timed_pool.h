// Threads for kernel benchmarks, with a clock on every parallel region.
//
// One caller at a time. The server runs kernels on LibTorch's threads instead.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/base/parallel.h"

namespace longview::bench {

// Seconds of one parallel region.
struct RegionTime {
  double wall = 0;
  double cpu = 0;  // Busiest thread's time, which neighbours on the machine hardly change.
};

class TimedPool final : public kernels::ParallelFor {
 public:
  explicit TimedPool(int threads);
  ~TimedPool() override;
  TimedPool(const TimedPool&) = delete;
  TimedPool& operator=(const TimedPool&) = delete;

  int threads() const override { return static_cast<int>(cpu_.size()); }
  void Run(kernels::ThreadBody body, void* context) const override;

  // Regions since the last Clear, in order.
  const std::vector<RegionTime>& regions() const { return regions_; }
  void Clear() { regions_.clear(); }

 private:
  void Serve(int thread);
  void Timed(kernels::ThreadBody body, void* context, int thread) const;

  mutable std::mutex mutex_;
  mutable std::condition_variable start_, done_;
  mutable kernels::ThreadBody body_ = nullptr;  // Guarded by mutex_, as the next three.
  mutable void* context_ = nullptr;
  mutable int round_ = 0;
  mutable int running_ = 0;
  bool stop_ = false;                // Guarded by mutex_.
  mutable std::vector<double> cpu_;  // One per thread, written by it alone in a region.
  mutable std::vector<RegionTime> regions_;
  std::vector<std::thread> workers_;
};

// CPU seconds of the calling thread.
double ThreadSeconds();

}  // namespace longview::bench
