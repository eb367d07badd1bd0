#include "server/grpc/call_context.h"

#include <chrono>

#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "server/request_id.h"

namespace longview::server {
namespace {

constexpr char kRequestIdKey[] = "x-request-id";

absl::Time ToTime(std::chrono::system_clock::time_point deadline) {
  if (deadline == std::chrono::system_clock::time_point::max()) return absl::InfiniteFuture();
  return absl::FromChrono(deadline);
}

}  // namespace

CallInfo ReadCallInfo(grpc::CallbackServerContext& context, std::string_view method) {
  CallInfo info;
  info.arrival = absl::Now();
  info.deadline = ToTime(context.deadline());
  info.client = PeerAddress(context.peer());
  info.api = "grpc";
  info.method = method;
  info.request_id = RequestIdOr(Metadata(context, kRequestIdKey));
  info.trace = ParseTraceparent(Metadata(context, "traceparent"));
  context.AddInitialMetadata(kRequestIdKey, info.request_id);
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
