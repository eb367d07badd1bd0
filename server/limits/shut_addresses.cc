#include "server/limits/shut_addresses.h"

namespace longview::server {

bool ShutAddresses::Shut(const std::string& address, EndCause cause, absl::Time now) {
  const auto found = shut_.find(address);
  if (found != shut_.end() && now < found->second.until) {
    found->second.until = now + duration_;
    return false;
  }
  absl::erase_if(shut_, [now](const auto& entry) { return now >= entry.second.until; });
  shut_[address] = {cause, now + duration_};
  return true;
}

std::optional<EndCause> ShutAddresses::Find(const std::string& address, absl::Time now) const {
  const auto found = shut_.find(address);
  if (found == shut_.end() || now >= found->second.until) return std::nullopt;
  return found->second.cause;
}

}  // namespace longview::server
