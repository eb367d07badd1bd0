#include "server/limits/byte_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "server/errors.h"

namespace longview::server {
namespace {

// Nothing predicts when bytes come back: a request holds them until its answer is out.
constexpr absl::Duration kRetryAfter = absl::Seconds(1);

absl::Status TooLarge(uint64_t bytes, uint64_t limit) {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat("the request would take ", bytes, " bytes in memory; the limit is ",
                                limit, " for one client"),
                   {.reason = "REQUEST_TOO_LARGE"});
}

absl::Status Full(std::string_view whose, uint64_t bytes, uint64_t held, uint64_t limit) {
  return MakeError(absl::StatusCode::kResourceExhausted,
                   absl::StrCat("the request takes ", bytes, " bytes in memory; ",
                                std::string(whose), " hold ", held, " of ", limit),
                   {.reason = "REQUEST_BYTES", .retry_after = kRetryAfter});
}

}  // namespace

ByteLimits ByteLimitsFor(uint64_t max_message_bytes) {
  constexpr uint64_t kLeast = uint64_t{16} << 20;
  const uint64_t per_client = std::max(3 * max_message_bytes, kLeast);
  return {.total = 4 * per_client, .per_client = per_client};
}

absl::StatusOr<ByteBudget::Reservation> ByteBudget::TryReserve(std::string_view client,
                                                               uint64_t bytes) {
  if (bytes > limits_.per_client) return TooLarge(bytes, limits_.per_client);
  absl::MutexLock lock(&mutex_);
  std::unique_ptr<Client>& slot = clients_[std::string(client)];
  if (slot == nullptr) slot = std::make_unique<Client>(Client{.name = std::string(client)});
  Client& found = *slot;
  if (absl::Status added = Add(found, bytes, false); !added.ok()) {
    if (found.reservations == 0) clients_.erase(found.name);
    return added;
  }
  ++found.reservations;
  return Reservation(*this, found, bytes);
}

absl::Status ByteBudget::Add(Client& client, uint64_t bytes, bool force) {
  if (!force && bytes > 0) {
    if (client.bytes + bytes > limits_.per_client) {
      return Full("this client's requests", bytes, client.bytes, limits_.per_client);
    }
    if (held_ + bytes > limits_.total) return Full("all requests", bytes, held_, limits_.total);
  }
  client.bytes += bytes;
  held_ += bytes;
  return absl::OkStatus();
}

void ByteBudget::Release(Client* client, uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  client->bytes -= bytes;
  held_ -= bytes;
  if (--client->reservations == 0) {
    const std::string name = std::move(client->name);
    clients_.erase(name);
  }
}

uint64_t ByteBudget::held() const {
  absl::MutexLock lock(&mutex_);
  return held_;
}

uint64_t ByteBudget::held(std::string_view client) const {
  absl::MutexLock lock(&mutex_);
  const auto found = clients_.find(std::string(client));
  return found == clients_.end() ? 0 : found->second->bytes;
}

absl::Status ByteBudget::Reservation::Resize(uint64_t bytes) { return Change(bytes, false); }

void ByteBudget::Reservation::Charge(uint64_t bytes) { Change(bytes, true).IgnoreError(); }

absl::Status ByteBudget::Reservation::Change(uint64_t bytes, bool force) {
  const ByteLimits& limits = budget_->limits_;
  if (!force && bytes > bytes_ && bytes > limits.per_client) {
    return TooLarge(bytes, limits.per_client);
  }
  absl::MutexLock lock(&budget_->mutex_);
  if (bytes > bytes_) {
    RETURN_IF_ERROR(budget_->Add(*client_, bytes - bytes_, force));
  } else {
    client_->bytes -= bytes_ - bytes;
    budget_->held_ -= bytes_ - bytes;
  }
  bytes_ = bytes;
  return absl::OkStatus();
}

void ByteBudget::Reservation::Reset() {
  if (budget_ == nullptr) return;
  budget_->Release(client_, bytes_);
  budget_ = nullptr;
  client_ = nullptr;
  bytes_ = 0;
}

}  // namespace longview::server
