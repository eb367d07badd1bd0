// Memory that the caches of several models share. Each block is in one of three places: *used* by
// a sequence, *evictable* (only kept so that a later prompt may find it), or *idle* (free, its
// memory still held by a pool). Who needs room takes idle memory back first, then evicts what was
// found least recently, in any cache: so the three stay within the capacity, which is what
// sequences may reserve. Only where they use nearly all of it does a step in flight go beyond, by
// the headroom at most.
//
// Counters may be read from any thread; everything else belongs to the executor's thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace longview::kernels {

class CacheBudget {
 public:
  // One cache that holds memory of the budget.
  class Member {
   public:
    virtual ~Member() = default;
    // Gives idle memory back to the system, at least `bytes` if there is that much.
    virtual void ReleaseIdle(int64_t bytes) = 0;
    // When its least recently found entry with evictable memory was found; kNever if none.
    virtual uint64_t OldestEvictable() const = 0;
    // Drops that entry. Its memory becomes idle where nothing else holds it.
    virtual void EvictOldest() = 0;
  };
  static constexpr uint64_t kNever = UINT64_MAX;

  explicit CacheBudget(int64_t capacity_bytes) : capacity_(capacity_bytes) {}
  CacheBudget(const CacheBudget&) = delete;
  CacheBudget& operator=(const CacheBudget&) = delete;

  int64_t capacity() const { return capacity_; }
  int64_t headroom() const { return headroom_.load(std::memory_order_relaxed); }
  int64_t used() const { return used_.load(std::memory_order_relaxed); }
  int64_t evictable() const { return evictable_.load(std::memory_order_relaxed); }
  int64_t idle() const { return idle_.load(std::memory_order_relaxed); }

  bool HasRoom(int64_t bytes) const { return Free() >= bytes; }
  bool HasHeadroom(int64_t bytes) const { return Free() + headroom() >= bytes; }
  // Takes idle memory back from members until there is room. False: there is not enough.
  bool ReleaseIdle(int64_t bytes);
  // Evicts the least recently found entry of all members. False: sequences use everything, which
  // cannot happen as long as what they reserved fits into the capacity.
  bool EvictOldest();

  // Order of finds; larger is later.
  uint64_t Tick() { return ++clock_; }

  // For members. The caller keeps members alive from Join to Leave.
  void Join(Member* member);
  void Leave(Member* member);
  // Less headroom evicts what no longer fits.
  void AddHeadroom(int64_t bytes);
  void AddUsed(int64_t bytes) { Add(&used_, bytes); }
  void AddEvictable(int64_t bytes) { Add(&evictable_, bytes); }
  void AddIdle(int64_t bytes) { Add(&idle_, bytes); }

 private:
  // One writer, so no read-modify-write is needed.
  static void Add(std::atomic<int64_t>* counter, int64_t bytes) {
    counter->store(counter->load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  int64_t Free() const { return capacity_ - used() - evictable() - idle(); }

  const int64_t capacity_;
  std::atomic<int64_t> headroom_{0};
  std::atomic<int64_t> used_{0};
  std::atomic<int64_t> evictable_{0};
  std::atomic<int64_t> idle_{0};
  uint64_t clock_ = 0;
  std::vector<Member*> members_;
};

}  // namespace longview::kernels
