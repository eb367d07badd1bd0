#include "server/preprocess_pool.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

namespace longview::server {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(1);

}  // namespace

PreprocessPool::PreprocessPool(int threads, size_t max_bytes)
    : max_bytes_(max_bytes), last_start_(absl::Now()) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
}

PreprocessPool::~PreprocessPool() { Stop(); }

bool PreprocessPool::Add(Job job) {
  const absl::Time now = absl::Now();
  std::unique_lock lock(mutex_);
  if (stopped_ || (bytes_ > 0 && bytes_ + job.bytes > max_bytes_)) return false;
  const absl::Time urgency = std::min(job.deadline, now + kPatience);
  if (waiting_.empty()) last_start_ = now;
  bytes_ += job.bytes;
  urgencies_.emplace(job.id, urgency);
  waiting_.emplace(Urgency(urgency, job.id), std::move(job));
  lock.unlock();
  changed_.notify_one();
  return true;
}

bool PreprocessPool::Remove(uint64_t id) {
  std::map<Urgency, Job>::node_type node;  // Destroyed after the lock is released.
  std::lock_guard lock(mutex_);
  const auto it = urgencies_.find(id);
  if (it == urgencies_.end()) return false;
  node = waiting_.extract(Urgency(it->second, id));
  urgencies_.erase(it);
  bytes_ -= node.mapped().bytes;
  return true;
}

void PreprocessPool::Stop() {
  std::lock_guard stop(stop_mutex_);
  std::map<Urgency, Job> left;
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    left.swap(waiting_);
    urgencies_.clear();
    for (const auto& [urgency, job] : left) bytes_ -= job.bytes;
    changed_.notify_all();
  }
  for (auto& [urgency, job] : left) job.run(Turn::kStopped);
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

size_t PreprocessPool::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

absl::Duration PreprocessPool::Stalled() const {
  std::lock_guard lock(mutex_);
  return waiting_.empty() ? absl::ZeroDuration() : absl::Now() - last_start_;
}

void PreprocessPool::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    auto node = waiting_.extract(waiting_.begin());
    urgencies_.erase(node.key().second);
    last_start_ = absl::Now();
    lock.unlock();
    const size_t bytes = node.mapped().bytes;
    node.mapped().run(Turn::kRun);
    node = {};
    lock.lock();
    bytes_ -= bytes;
  }
}

}  // namespace longview::server
