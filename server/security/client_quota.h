// How much of the server the holder of a key may take.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace longview::server {

// Limits of a key's name; 0 = no limit.
struct ClientLimits {
  int max_inflight = 0;          // Requests that are under way.
  double tokens_per_second = 0;  // Read and generated, over time.
  double weight = 1;             // Share of the devices relative to other clients; above 0.

  bool operator==(const ClientLimits&) const = default;
};

// Counts what a client has under way and what it has spent.
//
// Tokens are a bucket that fills at tokens_per_second and holds one second's worth, at least one
// token. A request is let in while anything is in it; its tokens are taken when they are known, the
// generated ones as they come, and may leave a debt: whoever is in finishes, whoever comes waits
// until the debt is paid. So the rate holds over time, and a document that is longer than the
// bucket can be read.
//
// Thread-safe. The clock is passed in and never runs backwards.
class ClientQuota {
 public:
  using Time = std::chrono::steady_clock::time_point;

  ClientQuota(std::string name, const ClientLimits& limits);

  // Requests under way and debts stay.
  void SetLimits(const ClientLimits& limits);

  // Takes a place. RESOURCE_EXHAUSTED with a retry delay if all are taken or tokens are owed.
  absl::Status Enter(Time now);
  void Leave();

  void Spend(int64_t tokens, Time now);

  int inflight() const;

 private:
  double Capacity() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fill(Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string name_;
  std::atomic<bool> counts_tokens_;
  mutable absl::Mutex mutex_;  // A leaf: nothing is called under it.
  ClientLimits limits_ ABSL_GUARDED_BY(mutex_);
  int inflight_ ABSL_GUARDED_BY(mutex_) = 0;
  double tokens_ ABSL_GUARDED_BY(mutex_) = 0;  // Tokens in the bucket; negative: owed.
  Time filled_ ABSL_GUARDED_BY(mutex_) = Time::min();
};

// A place among a client's requests in flight. Thread-safe.
class CallPermit {
 public:
  // Null for a null quota. RESOURCE_EXHAUSTED as Enter.
  static absl::StatusOr<std::shared_ptr<CallPermit>> Get(const std::shared_ptr<ClientQuota>& quota);

  explicit CallPermit(std::shared_ptr<ClientQuota> quota) : quota_(std::move(quota)) {}
  ~CallPermit() { Release(); }
  CallPermit(const CallPermit&) = delete;
  CallPermit& operator=(const CallPermit&) = delete;

  // The call is over; idempotent.
  void Release() {
    if (!released_.exchange(true)) quota_->Leave();
  }

 private:
  const std::shared_ptr<ClientQuota> quota_;
  std::atomic<bool> released_{false};
};

}  // namespace longview::server
