// What every call carries through the server, whatever the transport.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/trace_context.h"

namespace longview::server {

class CallSpans;  // server/tracing/call_spans.h

// Constant for the life of a call; copied into the engine.
struct CallInfo {
  std::string request_id;  // The caller's x-request-id, or a new one.
  std::string client;      // Key name, else peer address without port: the unit of fairness.
  TraceContext trace;      // As the caller sent it.
  absl::Time arrival = absl::InfinitePast();
  absl::Time deadline = absl::InfiniteFuture();
  std::string_view api;     // "grpc" or "http"; static storage.
  std::string_view method;  // RPC name or route template; static storage.
  std::shared_ptr<CallSpans> spans;  // Null unless the call is traced.
};

// Names a submitted call for cancellation; 0 = none.
using CallId = uint64_t;

// Runs exactly once, on an unspecified thread, never inside the call that took it unless
// that call says so. Must not block.
template <typename Response>
using Reply = absl::AnyInvocable<void(absl::StatusOr<Response>)>;

}  // namespace longview::server
