// The threads that tokenise and decode: everything between a parsed request and one with a
// known cost.
//
// Bounded in bytes of requests it holds, in total and for each client, so that parsed documents
// cannot pile up faster than they are prepared; and in bytes that long jobs work with. Clients
// take turns by the bytes of their jobs. Of one client the most urgent job runs first: the earliest
// deadline, or for jobs with a late or no deadline a second after they came. One thread is left to
// short jobs, and of three or more no client has two for long ones.
// Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace longview::server {

struct PreprocessLimits {
  size_t bytes = size_t{256} << 20;         // Bytes of all requests, waiting and running.
  size_t client_bytes = size_t{192} << 20;  // Bytes of one client's requests.
  size_t scratch = size_t{512} << 20;       // Working memory of all running long jobs together.
  size_t long_scratch = size_t{128} << 20;  // A job that needs more working memory is a long one.
};

class PreprocessPool {
 public:
  // How a job ends up: it runs, or the pool stops before its turn. Called exactly once, on a
  // thread of the pool or in Stop, unless Remove took the job out.
  enum class Turn { kRun, kStopped };
  struct Job {
    uint64_t id = 0;
    std::string client = "";
    absl::Time deadline = absl::InfiniteFuture();
    size_t bytes = 0;    // The request's size.
    size_t scratch = 0;  // Most working memory while it runs.
    absl::AnyInvocable<void(Turn)> run;
  };

  PreprocessPool(int threads, const PreprocessLimits& limits);
  ~PreprocessPool();

  // False if the bytes it holds would exceed a bound, or it is stopped; a job that is larger than
  // a bound is taken when nothing else counts towards it. REQUIRES: the id is not in the pool.
  bool Add(Job job);

  // True if the job was waiting; it will not be called any more.
  bool Remove(uint64_t id);

  // Ends waiting jobs with kStopped, waits for running ones. Idempotent.
  void Stop();

  size_t bytes() const;
  const PreprocessLimits& limits() const { return limits_; }

  // By how much the slowest running job is over what its size explains, or for how long jobs have
  // waited while none ran; 0 if the pool is only busy.
  absl::Duration Stalled() const;

 private:
  using Urgency = std::pair<absl::Time, uint64_t>;
  using Line = std::map<Urgency, Job>;
  struct Client {
    Line waiting_short, waiting_long;
    int jobs = 0;       // Number of jobs, waiting and running.
    size_t bytes = 0;   // Bytes of these jobs.
    double served = 0;  // Virtual time: bytes of its started jobs, plus where it began.
    int running_long = 0;
  };
  using Clients = std::map<std::string, Client>;
  struct Place {  // A waiting job's position.
    Clients::iterator client;
    absl::Time urgency;
    bool is_long;
    Line& line() const { return LineOf(client->second, is_long); }
  };
  struct Running {
    absl::Time start;
    absl::Duration allowance;
  };

  static Line& LineOf(Client& client, bool is_long) {
    return is_long ? client.waiting_long : client.waiting_short;
  }
  void Loop(bool short_only);
  bool IsLong(const Job& job) const { return job.scratch > limits_.long_scratch; }
  struct Choice {
    Clients::iterator client;
    const Urgency* job;  // Null: none may run now.
    bool is_long;
  };
  Choice Next(bool short_only) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counts one job of the client less; the entry goes with the last one.
  void Forget(Clients::iterator client) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const PreprocessLimits limits_;
  const int thread_count_;
  mutable absl::Mutex mutex_;  // Guards the queue only; no job runs under it.
  absl::CondVar changed_;
  Clients clients_ ABSL_GUARDED_BY(mutex_);  // With jobs.
  std::map<uint64_t, Place> places_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Running> running_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;    // Waiting and running.
  size_t scratch_ ABSL_GUARDED_BY(mutex_) = 0;  // Held by running long jobs.
  double served_ ABSL_GUARDED_BY(mutex_) = 0;   // Virtual time at which a new client begins.
  absl::Time last_change_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Mutex stop_mutex_;  // One Stop at a time.
  std::vector<std::thread> threads_;
};

}  // namespace longview::server
