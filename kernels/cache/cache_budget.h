// One model's part of a CacheMemory: the memory's operations, and counters of the model's own. A
// model that shares with nobody has the memory to itself.
//
// Thread-safety as CacheMemory says: counters from any thread, all else under Lock().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "kernels/cache/cache_memory.h"

namespace longview::kernels {

class CacheBudget {
 public:
  using Member = CacheMemory::Member;
  static constexpr uint64_t kNever = CacheMemory::kNever;

  // Memory of its own.
  explicit CacheBudget(int64_t capacity_bytes)
      : own_(std::make_unique<CacheMemory>(capacity_bytes)), memory_(*own_) {}
  // Shares `memory`, which outlives it.
  explicit CacheBudget(CacheMemory& memory) : memory_(memory) {}
  CacheBudget(const CacheBudget&) = delete;
  CacheBudget& operator=(const CacheBudget&) = delete;

  const CacheMemory& memory() const { return memory_; }
  [[nodiscard]] std::unique_lock<std::mutex> Lock() { return memory_.Lock(); }

  int64_t capacity() const { return memory_.capacity(); }  // Shared by all users of the memory.
  // This model's.
  int64_t headroom() const { return headroom_.load(std::memory_order_relaxed); }
  int64_t used() const { return used_.load(std::memory_order_relaxed); }
  int64_t evictable() const { return evictable_.load(std::memory_order_relaxed); }
  int64_t idle() const { return idle_.load(std::memory_order_relaxed); }

  bool HasRoom(int64_t bytes) const { return memory_.Free() >= bytes; }
  // One step is in flight at a time: the headroom it may use is its own model's.
  bool HasHeadroom(int64_t bytes) const { return memory_.Free() + headroom() >= bytes; }
  // Takes idle memory back from whoever shares the memory, until there is room. False: there is
  // not enough.
  bool ReleaseIdle(int64_t bytes) { return memory_.ReleaseIdle(bytes); }
  // Evicts the entry found least recently, whosever it is. False: sequences use everything.
  bool EvictOldest() { return memory_.EvictOldest(); }
  // Both, until there is room; for memory that is not of a block pool. False: there is not enough.
  bool MakeRoom(int64_t bytes) {
    while (!HasRoom(bytes)) {
      if (!ReleaseIdle(bytes) && !EvictOldest()) return false;
    }
    return true;
  }

  // Bytes a step may take while no other is in flight: kept and idle memory gives way to it.
  int64_t Room() const { return capacity() - memory_.used() + headroom(); }

  uint64_t Tick() { return memory_.Tick(); }

  // For members: see CacheMemory.
  void Join(Member* member) { memory_.Join(member); }
  void Leave(Member* member) { memory_.Leave(member); }
  void AddHeadroom(int64_t bytes) {
    CacheMemory::Add(&headroom_, bytes);
    memory_.AddHeadroom(bytes);
  }
  void AddUsed(int64_t bytes) {
    CacheMemory::Add(&used_, bytes);
    memory_.AddUsed(bytes);
  }
  void AddEvictable(int64_t bytes) {
    CacheMemory::Add(&evictable_, bytes);
    memory_.AddEvictable(bytes);
  }
  void AddIdle(int64_t bytes) {
    CacheMemory::Add(&idle_, bytes);
    memory_.AddIdle(bytes);
  }

 private:
  const std::unique_ptr<CacheMemory> own_;
  CacheMemory& memory_;
  std::atomic<int64_t> headroom_{0};
  std::atomic<int64_t> used_{0};
  std::atomic<int64_t> evictable_{0};
  std::atomic<int64_t> idle_{0};
};

}  // namespace longview::kernels
