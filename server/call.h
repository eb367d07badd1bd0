// The context that every call carries through the server, whatever the transport.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/call_ids.h"

namespace longview::server {

class CallSpans;    // server/tracing/call_spans.h
class CallPermit;   // server/security/client_quota.h
class ClientQuota;  // likewise

// Constant for the life of a call; copied into the engine.
struct CallInfo {
  std::string request_id;  // The caller's x-request-id, or a new one.
  // The unit of fairness: the key's name, else the peer's address without port, of IPv6 the /64.
  std::string client;
  std::string address;  // The peer's, in full, as far as proxies are trusted to name it.
  bool keyed = false;   // Whether `client` is the name of a key.
  TraceContext trace;   // The caller's traceparent.
  absl::Time arrival = absl::InfinitePast();
  absl::Time deadline = absl::InfiniteFuture();
  std::string_view api;              // "grpc" or "http"; static storage.
  std::string_view method;           // RPC name or route template; static storage.
  std::shared_ptr<CallSpans> spans;  // Null unless the call is traced.

  double weight = 1;         // The client's share of the devices relative to others.
  uint64_t cache_space = 0;  // models::Request::cache_space of its requests.
  // Requests of one list, which all come back if one of them is refused.
  size_t refused_together = 1;
  std::shared_ptr<ClientQuota> quota;  // Limits of the key; null: none.
  // The call's place in the key's max_inflight; given back when it is recorded, or with its last
  // copy.
  std::shared_ptr<CallPermit> permit;

  // The name of the caller in logs.
  std::string_view caller() const { return keyed || address.empty() ? client : address; }
};

// Names a submitted call for cancellation; 0 = none.
using CallId = uint64_t;

// Runs exactly once, on an unspecified thread, never inside the call that took it unless
// that call says so. Must not block.
template <typename Response>
using Reply = absl::AnyInvocable<void(absl::StatusOr<Response>)>;

}  // namespace longview::server
