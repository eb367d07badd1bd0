#include "client/cli/load_run.h"

#include <chrono>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

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

// The samples of calls by their number; thread-safe.
class OpenCalls {
 public:
  explicit OpenCalls(size_t count) : samples_(count), open_(count) {}

  void End(size_t number, LoadSample sample) {
    absl::MutexLock lock(&mutex_);
    samples_[number] = std::move(sample);
    --open_;
  }

  // Waits for the end of all. The object may be destroyed after that.
  std::vector<LoadSample> TakeAll() {
    const auto over = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return open_ == 0; };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&over));
    return std::move(samples_);
  }

 private:
  absl::Mutex mutex_;
  std::vector<LoadSample> samples_ ABSL_GUARDED_BY(mutex_);
  size_t open_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::vector<LoadSample> RunLoad(const std::vector<Arrival>& plan, const StartCall& start,
                                double* total_seconds) {
  OpenCalls calls(plan.size());
  const Clock::time_point begin = Clock::now();
  for (size_t i = 0; i < plan.size(); ++i) {
    const Clock::time_point due =
        begin + std::chrono::nanoseconds(static_cast<int64_t>(plan[i].seconds * 1e9));
    std::this_thread::sleep_until(due);
    start(plan[i].request,
          [&calls, i, due](const CallEnd& end) { calls.End(i, SampleOf(end, due)); });
  }
  std::vector<LoadSample> samples = calls.TakeAll();
  *total_seconds = Seconds(Clock::now() - begin);
  return samples;
}

}  // namespace longview::client
