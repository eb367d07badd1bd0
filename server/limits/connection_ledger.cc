#include "server/limits/connection_ledger.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace longview::server {
namespace {

// A connection costs kernel and library memory even if nothing is sent.
constexpr int kMostConnections = 8192;
constexpr int kMostPerAddress = 2048;

// Descriptors of a connection: one on HTTP, two on gRPC.
constexpr int kDescriptorsPerPair = 3;

// Most connections that may be closing to make room: they still hold their descriptors.
constexpr int kMostLeaving = 16;

}  // namespace

int RaiseDescriptorLimit() {
  constexpr rlim_t kMost = 1 << 20;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  const rlimit raised{std::max(limit.rlim_cur, std::min(limit.rlim_max, kMost)), limit.rlim_max};
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  return static_cast<int>(std::min(limit.rlim_cur, kMost));
}

ConnectionLimits ConnectionLimitsFor(int descriptors, int total, int per_address) {
  const int margin = std::max(64, descriptors / 8) + kDescriptorsPerPair * kMostLeaving;
  const int most = std::max(1, (descriptors - margin) / kDescriptorsPerPair);
  ConnectionLimits limits;
  limits.total = total > 0 ? std::min(total, most) : std::min(most, kMostConnections);
  limits.per_address = per_address > 0 ? std::min(per_address, limits.total)
                                       : std::clamp(limits.total / 2, 1, kMostPerAddress);
  return limits;
}

struct ConnectionLedger::Record {
  Address* address = nullptr;  // Valid until the connection leaves or is removed.
  std::string name;
  absl::AnyInvocable<void()> close;
  absl::Mutex closing;  // Held while `close` runs; taken under no other lock.
  bool gone ABSL_GUARDED_BY(closing) = false;  // The entry is destroyed.

  // Guarded by the ledger's lock.
  int calls = 0;
  bool leaving = false;
  Records::iterator place;  // In the list of idle ones while calls is 0 and it does not leave.
};

std::unique_ptr<ConnectionLedger::Entry> ConnectionLedger::Admit(std::string address,
                                                                 absl::AnyInvocable<void()> close,
                                                                 PerAddress per_address) {
  const int most = per_address == PerAddress::kLimited ? limits_.per_address : limits_.total;
  std::shared_ptr<Record> victim;
  auto record = std::make_shared<Record>();
  record->close = std::move(close);
  record->name = std::move(address);
  {
    absl::MutexLock lock(&mutex_);
    std::unique_ptr<Address>& slot = addresses_[record->name];
    if (slot == nullptr) slot = std::make_unique<Address>();
    Address& own = *slot;
    if (open_ >= limits_.total || own.open >= most) {
      victim = Victim(own, most);
      if (victim == nullptr) {
        ++refused_;
        if (own.open == 0) addresses_.erase(record->name);
        return nullptr;
      }
      victim->leaving = true;
      --open_;
      ++leaving_;
      if (--victim->address->open == 0 && victim->address != &own) addresses_.erase(victim->name);
    }
    record->address = &own;
    record->place = own.idle.insert(own.idle.end(), record);
    ++own.open;
    ++open_;
  }
  // Takes the newcomer out again where closing the other fails.
  auto entry = std::make_unique<Entry>(*this, std::move(record));
  if (victim != nullptr) {
    // Outside the ledger's lock, since `close` runs the transport's code. As long as `closing` is
    // held the victim's entry, and so its socket, cannot go.
    absl::MutexLock lock(&victim->closing);
    if (!victim->gone) victim->close();
  }
  return entry;
}

std::shared_ptr<ConnectionLedger::Record> ConnectionLedger::TakeIdle(Address& address) {
  if (address.idle.empty()) return nullptr;
  std::shared_ptr<Record> record = std::move(address.idle.front());
  address.idle.pop_front();
  return record;
}

std::shared_ptr<ConnectionLedger::Record> ConnectionLedger::Victim(Address& newcomer, int most) {
  if (leaving_ >= kMostLeaving) return nullptr;
  if (newcomer.open >= most) return TakeIdle(newcomer);
  Address* busiest = nullptr;
  for (const auto& [name, address] : addresses_) {
    if (address->idle.empty()) continue;
    if (busiest == nullptr || address->open > busiest->open) busiest = address.get();
  }
  return busiest == nullptr ? nullptr : TakeIdle(*busiest);
}

void ConnectionLedger::SetIdle(const std::shared_ptr<Record>& record, bool idle) {
  absl::MutexLock lock(&mutex_);
  record->calls += idle ? -1 : 1;
  if (record->leaving) return;
  Records& list = record->address->idle;
  if (idle && record->calls == 0) record->place = list.insert(list.end(), record);
  if (!idle && record->calls == 1) list.erase(record->place);
}

void ConnectionLedger::Remove(const std::shared_ptr<Record>& record) {
  {
    absl::MutexLock lock(&record->closing);
    record->gone = true;
  }
  absl::MutexLock lock(&mutex_);
  if (record->leaving) {
    --leaving_;
    return;
  }
  Address& own = *record->address;
  if (record->calls == 0) own.idle.erase(record->place);
  --open_;
  if (--own.open == 0) addresses_.erase(record->name);
}

int ConnectionLedger::open() const {
  absl::MutexLock lock(&mutex_);
  return open_;
}

int ConnectionLedger::open(const std::string& address) const {
  absl::MutexLock lock(&mutex_);
  const auto found = addresses_.find(address);
  return found == addresses_.end() ? 0 : found->second->open;
}

uint64_t ConnectionLedger::refused() const {
  absl::MutexLock lock(&mutex_);
  return refused_;
}

}  // namespace longview::server
