// Memory that the caches of several models share. Each block is in one of three places: *used* by
// a sequence, *evictable* (only kept so that a later prompt may find it, as what it is found by),
// or *idle* (free, its memory still held by a pool). Who needs room takes idle memory back first,
// then evicts what was found least recently, in any cache: so the three stay within the capacity,
// which is what sequences of all models together may reserve. Only where they use nearly all of it
// does a step in flight go beyond, by its model's headroom at most.
//
// Every model counts through a CacheBudget of its own (cache_budget.h).
//
// Counters may be read from any thread. Everything else happens under Lock(), which the entry
// points of caches take: models of one memory may be loaded, used and destroyed by several threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace longview::kernels {

class CacheMemory {
 public:
  // One cache that holds memory. Called under the lock, from the thread of whoever needs room.
  class Member {
   public:
    virtual ~Member() = default;
    // Gives idle memory back to the system, at least `bytes` if there is that much.
    virtual void ReleaseIdle(int64_t bytes) = 0;
    // When the entry was found that is evicted next; kNever if none.
    virtual uint64_t OldestEvictable() const = 0;
    // Drops that entry. Its memory becomes idle where nothing else holds it.
    virtual void EvictOldest() = 0;
  };
  static constexpr uint64_t kNever = UINT64_MAX;

  explicit CacheMemory(int64_t capacity_bytes) : capacity_(capacity_bytes) {}
  CacheMemory(const CacheMemory&) = delete;
  CacheMemory& operator=(const CacheMemory&) = delete;

  // Not recursive: no entry point of a cache is called while it is held.
  [[nodiscard]] std::unique_lock<std::mutex> Lock() { return std::unique_lock(mutex_); }

  int64_t capacity() const { return capacity_; }
  int64_t headroom() const { return headroom_.load(std::memory_order_relaxed); }
  int64_t used() const { return used_.load(std::memory_order_relaxed); }
  int64_t evictable() const { return evictable_.load(std::memory_order_relaxed); }
  int64_t idle() const { return idle_.load(std::memory_order_relaxed); }
  int64_t Free() const { return capacity_ - used() - evictable() - idle(); }

  // Takes idle memory back from members until `bytes` are free. False: there is not enough.
  bool ReleaseIdle(int64_t bytes);
  // Evicts the least recently found entry of all members. False: sequences use everything, which
  // cannot happen as long as what they reserved fits into the capacity.
  bool EvictOldest();

  // Order of finds; larger is later.
  uint64_t Tick() { return ++clock_; }

  // The caller keeps members alive from Join to Leave.
  void Join(Member* member) { members_.push_back(member); }
  void Leave(Member* member) { std::erase(members_, member); }

  // Less headroom evicts what no longer fits.
  void AddHeadroom(int64_t bytes);
  void AddUsed(int64_t bytes) { Add(&used_, bytes); }
  void AddEvictable(int64_t bytes) { Add(&evictable_, bytes); }
  void AddIdle(int64_t bytes) { Add(&idle_, bytes); }

  // For counters that only change under the lock: no read-modify-write is needed.
  static void Add(std::atomic<int64_t>* counter, int64_t bytes) {
    counter->store(counter->load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }

 private:
  std::mutex mutex_;  // See Lock().
  const int64_t capacity_;
  std::atomic<int64_t> headroom_{0};
  std::atomic<int64_t> used_{0};
  std::atomic<int64_t> evictable_{0};
  std::atomic<int64_t> idle_{0};
  uint64_t clock_ = 0;
  std::vector<Member*> members_;
};

}  // namespace longview::kernels
