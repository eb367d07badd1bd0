#include "server/engine/preprocess_pool.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "server/scheduler/steady_clock.h"
#include "server/scheduler/thread_loop.h"
#include "server/scheduler/without_lock.h"

namespace longview::server {
namespace {

// A job without a near deadline is as urgent as one that is due so long after it came, so that
// deadlines of others cannot hold it back for ever.
constexpr absl::Duration kPatience = absl::Seconds(1);

// Charged to a client for each job beside its bytes, so that many empty jobs are not free.
constexpr double kJobBytes = 4096;

// The time after which a running job counts as stalled, at a rate slower than any real machine's.
absl::Duration Allowance(const PreprocessPool::Job& job) {
  constexpr double kBytesPerSecond = 256 << 10, kScratchPerSecond = 16 << 20;
  return absl::Seconds(static_cast<double>(job.bytes) / kBytesPerSecond +
                       static_cast<double>(job.scratch) / kScratchPerSecond);
}

}  // namespace

PreprocessPool::PreprocessPool(int threads, const PreprocessLimits& limits)
    : limits_(limits), thread_count_(threads), last_change_(SteadyNow()) {
  for (int i = 0; i < threads; ++i) {
    threads_.push_back(
        StartThread([this, short_only = i == 0 && threads > 1] { Loop(short_only); }));
  }
}

PreprocessPool::~PreprocessPool() { Stop(); }

bool PreprocessPool::Add(Job job) {
  const absl::Time now = SteadyNow();
  bool everybody;  // Not every thread may take a long job.
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_ || (bytes_ > 0 && bytes_ + job.bytes > limits_.bytes)) return false;
    const auto known = clients_.find(job.client);
    if (known != clients_.end() && known->second.bytes + job.bytes > limits_.client_bytes) {
      return false;
    }
    const absl::Time urgency = std::min(job.deadline, now + kPatience);
    const auto [client, is_new] = clients_.try_emplace(job.client);
    if (is_new) client->second.served = served_;
    if (places_.empty()) last_change_ = now;
    bytes_ += job.bytes;
    client->second.bytes += job.bytes;
    ++client->second.jobs;
    everybody = IsLong(job);
    places_.emplace(job.id, Place{client, urgency, everybody});
    LineOf(client->second, everybody).emplace(Urgency(urgency, job.id), std::move(job));
  }
  // One notified thread might be the one that takes short jobs only: the wake-up would be lost.
  everybody ? changed_.SignalAll() : changed_.Signal();
  return true;
}

bool PreprocessPool::Remove(uint64_t id) {
  Line::node_type node;  // Destroyed after the lock is released.
  absl::MutexLock lock(&mutex_);
  const auto it = places_.find(id);
  if (it == places_.end()) return false;
  const Clients::iterator client = it->second.client;
  node = it->second.line().extract(Urgency(it->second.urgency, id));
  places_.erase(it);
  bytes_ -= node.mapped().bytes;
  client->second.bytes -= node.mapped().bytes;
  Forget(client);
  return true;
}

void PreprocessPool::Stop() {
  absl::MutexLock stop(&stop_mutex_);
  std::vector<Job> left;
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    for (auto& [name, client] : clients_) {
      for (Line* line : {&client.waiting_short, &client.waiting_long}) {
        for (auto& [urgency, job] : *line) {
          bytes_ -= job.bytes;
          client.bytes -= job.bytes;
          --client.jobs;
          left.push_back(std::move(job));
        }
        line->clear();
      }
    }
    places_.clear();
    changed_.SignalAll();
  }
  for (Job& job : left) job.run(Turn::kStopped);
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

size_t PreprocessPool::bytes() const {
  absl::MutexLock lock(&mutex_);
  return bytes_;
}

absl::Duration PreprocessPool::Stalled() const {
  const absl::Time now = SteadyNow();
  absl::MutexLock lock(&mutex_);
  absl::Duration stalled = absl::ZeroDuration();
  for (const auto& [id, job] : running_) {
    stalled = std::max(stalled, now - job.start - job.allowance);
  }
  if (running_.empty() && !places_.empty()) stalled = std::max(stalled, now - last_change_);
  return stalled;
}

PreprocessPool::Choice PreprocessPool::Next(bool short_only) {
  Choice best_short{clients_.end(), nullptr, false}, best_long{clients_.end(), nullptr, true};
  const auto comes_before = [](const Choice& a, const Choice& b) {
    if (b.job == nullptr) return true;
    return std::pair(a.client->second.served, *a.job) < std::pair(b.client->second.served, *b.job);
  };
  for (auto client = clients_.begin(); client != clients_.end(); ++client) {
    const bool wants_long = !short_only && (thread_count_ < 3 || client->second.running_long == 0);
    for (Choice* const best : {&best_short, &best_long}) {
      const Line& line = LineOf(client->second, best->is_long);
      if (line.empty() || (best->is_long && !wants_long)) continue;
      const Choice choice{client, &line.begin()->first, best->is_long};
      if (comes_before(choice, *best)) *best = choice;
    }
  }
  // Long jobs keep their order: none passes one that waits for room.
  if (best_long.job == nullptr) return best_short;
  const Job& job = best_long.client->second.waiting_long.at(*best_long.job);
  const bool fits = scratch_ == 0 || scratch_ + job.scratch <= limits_.scratch;
  return fits && comes_before(best_long, best_short) ? best_long : best_short;
}

void PreprocessPool::Forget(Clients::iterator client) {
  if (--client->second.jobs == 0) clients_.erase(client);
}

void PreprocessPool::Loop(bool short_only) {
  absl::MutexLock lock(&mutex_);
  while (true) {
    const Choice choice = Next(short_only);
    if (choice.job == nullptr) {
      if (stopped_) return;
      changed_.Wait(&mutex_);
      continue;
    }
    const Clients::iterator client = choice.client;
    const bool is_long = choice.is_long;
    Line& line = LineOf(client->second, is_long);
    const Job& job = line.at(*choice.job);
    const uint64_t id = job.id;
    const absl::Time now = SteadyNow();
    // First, as it may throw bad_alloc: then the job still waits, and the loop begins again.
    running_.emplace(id, Running{now, Allowance(job)});
    Line::node_type node = line.extract(*choice.job);
    places_.erase(id);
    last_change_ = now;
    const size_t bytes = job.bytes, scratch = is_long ? job.scratch : 0;
    scratch_ += scratch;
    client->second.running_long += is_long ? 1 : 0;
    served_ = std::max(served_, client->second.served);
    client->second.served += kJobBytes + static_cast<double>(job.bytes);
    // However the job ends, it counts no longer.
    const absl::Cleanup end = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      running_.erase(id);
      last_change_ = SteadyNow();
      bytes_ -= bytes;
      scratch_ -= scratch;
      client->second.bytes -= bytes;
      client->second.running_long -= is_long ? 1 : 0;
      Forget(client);
      // Jobs that had no room may have it now.
      if (!places_.empty()) changed_.SignalAll();
    };
    WithoutLock(&mutex_, [&node] {
      const absl::Cleanup drop = [&node] { node = {}; };
      node.mapped().run(Turn::kRun);
    });
  }
}

}  // namespace longview::server
