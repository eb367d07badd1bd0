// How many connections a port holds, in total and for one address.
//
// Each port has a ledger of its own, so that connections to one port cannot close another. A port
// at its limit stays open to newcomers as long as some connection idles: the one that has idled
// longest makes room, among those of the newcomer's address if that address is at its limit,
// else among those of the address with the most connections.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

namespace longview::server {

struct ConnectionLimits {
  int total = 1024;
  int per_address = 512;
};

// Raises the soft limit of open descriptors to the hard one and returns what then holds, at most
// 1,048,576. Once, at the start of the process.
int RaiseDescriptorLimit();

// Limits of one port when `descriptors` serve both transports: a margin is left for models, files
// and what accepts connections in order to refuse them. `total` and `per_address` as the flags
// have them, 0 = derived. At least 1 of each.
ConnectionLimits ConnectionLimitsFor(int descriptors, int total, int per_address);

// Thread-safe. Outlives its entries.
class ConnectionLedger {
 public:
  explicit ConnectionLedger(ConnectionLimits limits) : limits_(limits) {}
  ConnectionLedger(const ConnectionLedger&) = delete;
  ConnectionLedger& operator=(const ConnectionLedger&) = delete;

  // One connection, counted until the entry is destroyed.
  class Entry;

  // Whether the limit of an address holds for it; a proxy's connections are many clients'.
  enum class PerAddress { kLimited, kUnlimited };

  // Counts a connection of `address`; null if it must be refused. It counts as idle. `close` is
  // called at most once, from another connection's Admit and under no lock, when this one makes
  // room: it begins to close the connection, whose entry may live a little longer. `close` must not
  // use the ledger or block, and may be called until the entry is destroyed.
  std::unique_ptr<Entry> Admit(std::string address, absl::AnyInvocable<void()> close,
                               PerAddress per_address = PerAddress::kLimited);

  int open() const;
  int open(const std::string& address) const;
  uint64_t refused() const;

 private:
  // A connection's record; shared, because it may be closing while its entry goes.
  struct Record;
  using Records = std::list<std::shared_ptr<Record>>;

  struct Address {
    int open = 0;
    Records idle;  // Longest first.
  };

  // Takes the longest idle of `address` out of its list; null if there is none.
  static std::shared_ptr<Record> TakeIdle(Address& address);
  // Whoever makes room for one more of `newcomer`, which may have `most`; null if nobody can.
  std::shared_ptr<Record> Victim(Address& newcomer, int most) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetIdle(const std::shared_ptr<Record>& record, bool idle);
  void Remove(const std::shared_ptr<Record>& record);

  const ConnectionLimits limits_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::unique_ptr<Address>> addresses_ ABSL_GUARDED_BY(mutex_);
  int open_ ABSL_GUARDED_BY(mutex_) = 0;     // Without those that are leaving.
  int leaving_ ABSL_GUARDED_BY(mutex_) = 0;  // Told to close, not yet gone.
  uint64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Belongs to its connection. Calls may overlap.
class ConnectionLedger::Entry {
 public:
  // Use Admit.
  Entry(ConnectionLedger& ledger, std::shared_ptr<Record> record)
      : ledger_(ledger), record_(std::move(record)) {}
  ~Entry() { ledger_.Remove(record_); }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  // Counts calls under way: the connection idles while there are none.
  void BeginCall() { ledger_.SetIdle(record_, false); }
  void EndCall() { ledger_.SetIdle(record_, true); }

 private:
  ConnectionLedger& ledger_;
  const std::shared_ptr<Record> record_;
};

}  // namespace longview::server
