#include "client/cli/load_run.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace longview::client {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

std::vector<LoadSample> RunLoad(const std::vector<Arrival>& plan, const StartCall& start,
                                double* total_seconds) {
  std::mutex mutex;  // Guards samples and open.
  std::condition_variable ended;
  std::vector<LoadSample> samples(plan.size());
  size_t open = plan.size();
  const Clock::time_point begin = Clock::now();
  for (size_t i = 0; i < plan.size(); ++i) {
    const double planned = plan[i].seconds;
    std::this_thread::sleep_until(begin +
                                  std::chrono::nanoseconds(static_cast<int64_t>(planned * 1e9)));
    start(plan[i].request, [&, i, planned](grpc::Status status) {
      const double latency = SecondsSince(begin) - planned;
      std::lock_guard<std::mutex> lock(mutex);
      samples[i] = {latency, status.error_code(), status.error_message()};
      // Under the lock: the waiting thread may destroy the condition right after.
      if (--open == 0) ended.notify_one();
    });
  }
  std::unique_lock<std::mutex> lock(mutex);
  ended.wait(lock, [&] { return open == 0; });
  *total_seconds = SecondsSince(begin);
  return samples;
}

}  // namespace longview::client
