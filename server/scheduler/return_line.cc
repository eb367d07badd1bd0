#include "server/scheduler/return_line.h"

#include <algorithm>

namespace longview::server {
namespace {

// Added to a predicted delay, as a part of it: a client that returns too early is refused again.
constexpr double kMargin = 0.5;
// Least margin, for delays so short that half of one is next to nothing.
constexpr absl::Duration kLeastMargin = absl::Milliseconds(20);

}  // namespace

ReturnLine::Client* ReturnLine::Find(const std::string& client, absl::Time now) {
  auto found = clients_.find(client);
  if (found == clients_.end()) {
    if (clients_.size() >= kMost) {
      absl::erase_if(clients_, [&](const auto& entry) {
        return now - entry.second.updated >= absl::Seconds(entry.second.seconds);
      });
    }
    if (clients_.size() >= kMost) return nullptr;
    found = clients_.try_emplace(client).first;
  }
  Client& entry = found->second;
  entry.seconds = std::max(0.0, entry.seconds - absl::ToDoubleSeconds(now - entry.updated));
  entry.updated = now;
  return &entry;
}

absl::Time ReturnLine::StartOf(const Returning& list, absl::Duration room, absl::Time now) {
  std::pair key(list.client, list.arrival);
  const auto told = starts_.find(key);
  if (told != starts_.end() && told->second > now) return told->second;
  absl::Time start = std::max(now + room, end_);
  Client* const own = Find(list.client, now);
  if (own == nullptr) return start;
  start = std::max(start, own->end);
  own->end = std::min(start + absl::Seconds(list.seconds), now + kLongest);
  if (own->seconds < limit_) end_ = std::max(end_, own->end);
  own->seconds += list.seconds;
  if (starts_.size() >= kMost) {
    absl::erase_if(starts_, [&](const auto& entry) { return entry.second <= now; });
  }
  if (starts_.size() < kMost) starts_.insert_or_assign(std::move(key), start);
  return start;
}

absl::Duration ReturnLine::Next(const Returning& list, absl::Duration room, absl::Time now) {
  const absl::Duration delay = StartOf(list, std::min(room, kLongest), now) - now;
  return std::min(delay + std::max(kMargin * delay, kLeastMargin), kLongest);
}

}  // namespace longview::server
