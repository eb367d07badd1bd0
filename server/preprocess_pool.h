// The threads that tokenise and decode: everything between a parsed request and one with a
// known cost.
//
// Bounded in bytes of requests it holds, so that parsed documents cannot pile up faster than
// they are prepared. The most urgent job runs first: the earliest deadline, or for jobs with a
// late or no deadline a second after they came.
// Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

namespace longview::server {

class PreprocessPool {
 public:
  // How a job ends up: it runs, or the pool stops before its turn. Called exactly once, on a
  // thread of the pool or in Stop, unless Remove took the job out.
  enum class Turn { kRun, kStopped };
  struct Job {
    uint64_t id = 0;
    absl::Time deadline = absl::InfiniteFuture();
    size_t bytes = 0;
    absl::AnyInvocable<void(Turn)> run;
  };

  PreprocessPool(int threads, size_t max_bytes);
  ~PreprocessPool();

  // False if the bytes it holds would exceed the bound, or it is stopped; a job that is larger
  // than the bound is taken when the pool is empty. REQUIRES: the id is not in the pool.
  bool Add(Job job);

  // True if the job was waiting; it will not be called any more.
  bool Remove(uint64_t id);

  // Ends waiting jobs with kStopped, waits for running ones. Idempotent.
  void Stop();

  size_t bytes() const;
  size_t max_bytes() const { return max_bytes_; }

  // For how long jobs have waited while none was started; 0 if none waits.
  absl::Duration Stalled() const;

 private:
  using Urgency = std::pair<absl::Time, uint64_t>;

  void Loop();

  const size_t max_bytes_;
  mutable std::mutex mutex_;  // Guards the queue only; no job runs under it.
  std::condition_variable changed_;
  std::map<Urgency, Job> waiting_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, absl::Time> urgencies_ ABSL_GUARDED_BY(mutex_);  // Of waiting jobs.
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;                          // Waiting and running.
  absl::Time last_start_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::mutex stop_mutex_;  // One Stop at a time.
  std::vector<std::thread> threads_;
};

}  // namespace longview::server
