// How many bytes of requests and answers are in memory, in total and for one client.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace longview::server {

struct ByteLimits {
  uint64_t total = uint64_t{768} << 20;
  uint64_t per_client = uint64_t{192} << 20;
};

// Limits that admit one request of `max_message_bytes` with its parsed form for each client, and
// four clients at that.
ByteLimits ByteLimitsFor(uint64_t max_message_bytes);

// Thread-safe. Outlives its reservations.
class ByteBudget {
 public:
  explicit ByteBudget(ByteLimits limits) : limits_(limits) {}
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  // Bytes held for one client until it is destroyed. Movable; a default one holds nothing and
  // cannot grow. Not thread-safe by itself.
  class Reservation;

  // INVALID_ARGUMENT (with need and limit) for more than one client may ever hold,
  // RESOURCE_EXHAUSTED with a retry hint if it does not fit beside what is held now. `client` is
  // the key's name, else the address. A reservation of 0 bytes is always granted.
  absl::StatusOr<Reservation> TryReserve(std::string_view client, uint64_t bytes);

  uint64_t held() const;
  uint64_t held(std::string_view client) const;
  const ByteLimits& limits() const { return limits_; }

 private:
  struct Client {
    std::string name;
    uint64_t bytes = 0;
    int reservations = 0;
  };

  absl::Status Add(Client& client, uint64_t bytes, bool force)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Release(Client* client, uint64_t bytes);

  const ByteLimits limits_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::unique_ptr<Client>> clients_ ABSL_GUARDED_BY(mutex_);
  uint64_t held_ ABSL_GUARDED_BY(mutex_) = 0;
};

class ByteBudget::Reservation {
 public:
  Reservation() = default;
  ~Reservation() { Reset(); }
  Reservation(Reservation&& other) noexcept { *this = std::move(other); }
  Reservation& operator=(Reservation&& other) noexcept {
    if (this == &other) return *this;
    Reset();
    budget_ = std::exchange(other.budget_, nullptr);
    client_ = std::exchange(other.client_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }

  uint64_t bytes() const { return bytes_; }

  // Holds `bytes` from now on. Fewer always succeeds; more as TryReserve, and on an error what
  // was held stays. REQUIRES: not empty.
  absl::Status Resize(uint64_t bytes);

  // Holds `bytes` without refusal, for answers, which are in memory already. Later requests of the
  // client are refused instead. REQUIRES: not empty.
  void Charge(uint64_t bytes);

  // Gives everything back.
  void Reset();

 private:
  friend class ByteBudget;
  Reservation(ByteBudget& budget, Client& client, uint64_t bytes)
      : budget_(&budget), client_(&client), bytes_(bytes) {}
  absl::Status Change(uint64_t bytes, bool force);

  ByteBudget* budget_ = nullptr;
  Client* client_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace longview::server
