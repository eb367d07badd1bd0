#include "client/cli/load_run.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace longview::client {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

// `due` is when the call was planned to start.
LoadSample SampleOf(const CallEnd& end, Clock::time_point due) {
  LoadSample sample{Seconds(Clock::now() - due), end.status.error_code(),
                    end.status.error_message()};
  if (end.pieces.empty()) return sample;
  sample.first_piece_seconds = Seconds(end.pieces.front() - due);
  for (size_t i = 1; i < end.pieces.size(); ++i) {
    sample.gap_seconds.push_back(Seconds(end.pieces[i] - end.pieces[i - 1]));
  }
  return sample;
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
    const Clock::time_point due =
        begin + std::chrono::nanoseconds(static_cast<int64_t>(plan[i].seconds * 1e9));
    std::this_thread::sleep_until(due);
    start(plan[i].request, [&, i, due](const CallEnd& end) {
      LoadSample sample = SampleOf(end, due);
      std::lock_guard<std::mutex> lock(mutex);
      samples[i] = std::move(sample);
      // Under the lock: the waiting thread may destroy the condition right after.
      if (--open == 0) ended.notify_one();
    });
  }
  std::unique_lock<std::mutex> lock(mutex);
  ended.wait(lock, [&] { return open == 0; });
  *total_seconds = Seconds(Clock::now() - begin);
  return samples;
}

}  // namespace longview::client
