#include "server/grpc/call_context.h"

#include <chrono>
#include <vector>

#include "absl/strings/str_replace.h"
#include "server/call_ids.h"
#include "server/scheduler/steady_clock.h"

namespace longview::server {
namespace {

// gRPC tells a deadline by the wall clock, whatever that says by now.
absl::Time DeadlineOf(const grpc::CallbackServerContext& context, absl::Time now) {
  const std::chrono::system_clock::time_point deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return absl::InfiniteFuture();
  return now + absl::FromChrono(deadline - std::chrono::system_clock::now());
}

std::vector<std::string_view> ForwardedFor(const grpc::ServerContextBase& context) {
  std::vector<std::string_view> values;
  const auto [first, last] = context.client_metadata().equal_range("x-forwarded-for");
  for (auto it = first; it != last; ++it) values.push_back({it->second.data(), it->second.size()});
  return values;
}

}  // namespace

CallInfo ReadCallInfo(const grpc::CallbackServerContext& context, std::string_view method,
                      const TrustedProxies& proxies, const std::string& address) {
  CallInfo info;
  info.arrival = SteadyNow();
  info.deadline = DeadlineOf(context, info.arrival);
  info.address = proxies.ClientOf(address, ForwardedFor(context));
  info.client = FairnessUnit(info.address);
  info.api = "grpc";
  info.method = method;
  info.request_id = RequestIdOr(Metadata(context, kRequestIdKey));
  info.trace = ParseTraceparent(Metadata(context, "traceparent"));
  return info;
}

std::string_view Metadata(const grpc::ServerContextBase& context, const char* key) {
  const auto found = context.client_metadata().find(key);
  if (found == context.client_metadata().end()) return {};
  return {found->second.data(), found->second.size()};
}

std::string PeerAddress(std::string_view peer) {
  const size_t scheme = peer.find(':');
  if (scheme == std::string_view::npos) return std::string(peer);
  if (peer.substr(0, scheme).starts_with("unix")) return "unix";
  peer.remove_prefix(scheme + 1);
  std::string address = absl::StrReplaceAll(std::string(peer), {{"%5B", "["}, {"%5D", "]"}});
  if (address.starts_with('[')) {
    const size_t end = address.find(']');
    return address.substr(1, end == std::string::npos ? end : end - 1);
  }
  return address.substr(0, address.rfind(':'));
}

}  // namespace longview::server
