#include "server/security/client_quota.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "models/status_macros.h"
#include "server/errors.h"

namespace longview::server {
namespace {

// When a place may be free again: nobody knows how long the requests under way take.
constexpr absl::Duration kPlaceRetry = absl::Milliseconds(500);
constexpr absl::Duration kLeastRetry = absl::Milliseconds(50);
constexpr absl::Duration kMostRetry = absl::Hours(1);

}  // namespace

ClientQuota::ClientQuota(std::string name, const ClientLimits& limits)
    : name_(std::move(name)), counts_tokens_(limits.tokens_per_second > 0), limits_(limits) {
  tokens_ = Capacity();
}

double ClientQuota::Capacity() const { return std::max(1.0, limits_.tokens_per_second); }

void ClientQuota::SetLimits(const ClientLimits& limits) {
  absl::MutexLock lock(&mutex_);
  if (limits == limits_) return;
  const bool began = limits_.tokens_per_second <= 0;
  limits_ = limits;
  counts_tokens_.store(limits.tokens_per_second > 0, std::memory_order_relaxed);
  tokens_ = began ? Capacity() : std::min(tokens_, Capacity());
}

void ClientQuota::Fill(Time now) {
  if (filled_ != Time::min() && now > filled_) {
    const double seconds = std::chrono::duration<double>(now - filled_).count();
    tokens_ = std::min(Capacity(), tokens_ + seconds * limits_.tokens_per_second);
  }
  filled_ = std::max(filled_, now);
}

absl::Status ClientQuota::Enter(Time now) {
  absl::MutexLock lock(&mutex_);
  if (limits_.max_inflight > 0 && inflight_ >= limits_.max_inflight) {
    return MakeError(absl::StatusCode::kResourceExhausted,
                     absl::StrCat("the key ", Quoted(name_), " has ", inflight_,
                                  " requests in flight, its limit is ", limits_.max_inflight),
                     {.reason = "CLIENT_INFLIGHT", .retry_after = kPlaceRetry});
  }
  if (limits_.tokens_per_second > 0) {
    Fill(now);
    // A token that is there in part is not there yet, but rounding owes nothing.
    if (tokens_ < 1e-6) {
      const double seconds = -tokens_ / limits_.tokens_per_second;
      return MakeError(
          absl::StatusCode::kResourceExhausted,
          absl::StrCat("the key ", Quoted(name_), " has used its ", limits_.tokens_per_second,
                       " tokens per second"),
          {.reason = "CLIENT_TOKENS",
           .retry_after = std::clamp(absl::Seconds(seconds), kLeastRetry, kMostRetry)});
    }
  }
  ++inflight_;
  return absl::OkStatus();
}

void ClientQuota::Leave() {
  absl::MutexLock lock(&mutex_);
  --inflight_;
}

void ClientQuota::Spend(int64_t tokens, Time now) {
  if (!counts_tokens_.load(std::memory_order_relaxed)) return;
  absl::MutexLock lock(&mutex_);
  Fill(now);
  tokens_ -= static_cast<double>(tokens);
}

int ClientQuota::inflight() const {
  absl::MutexLock lock(&mutex_);
  return inflight_;
}

absl::StatusOr<std::shared_ptr<CallPermit>> CallPermit::Get(
    const std::shared_ptr<ClientQuota>& quota) {
  if (quota == nullptr) return nullptr;
  RETURN_IF_ERROR(quota->Enter(std::chrono::steady_clock::now()));
  return std::make_shared<CallPermit>(quota);
}

}  // namespace longview::server
