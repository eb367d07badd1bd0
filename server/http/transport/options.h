// Limits of the HTTP transport.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "server/call.h"
#include "server/http/exchange.h"
#include "server/http/message.h"
#include "server/limits/byte_budget.h"
#include "server/limits/connection_ends.h"
#include "server/limits/connection_ledger.h"
#include "server/limits/fixed_limits.h"
#include "server/security/client_address.h"
#include "server/security/tls_material.h"

namespace longview::server {

// The decision about a request whose head has been read and whose body has not.
struct HeadVerdict {
  std::optional<HttpResponse> refusal = {};  // The answer; it ends the connection.
  size_t max_body_bytes = 0;                 // 0: the path takes no body.
  // Gets the complete request unless it is refused, on one of the listener's threads; must not
  // block.
  absl::AnyInvocable<void(ExchangePtr)> serve = nullptr;
};

struct TransportOptions {
  std::string host = "127.0.0.1";
  int port = 8080;  // 0 = a free one.
  int threads = 2;
  size_t max_body_bytes = size_t{64} << 20;  // Limit of the body sent, and again decompressed.
  ConnectionLimits connections;              // Limits of this port.
  ConnectionEnds ends = {};                  // Outlives the listener.
  // Bytes of bodies and answers, by client; null: not counted. Outlives the listener.
  ByteBudget* bytes = nullptr;
  size_t max_header_bytes = kMaxHeadBytes;  // Also of a chunk's head, and of the trailers.
  const TlsSource* tls = nullptr;           // Null = plaintext. Outlives the listener.
  // Asked when a head has been read, before its body. May fill in who calls. Thread-safe.
  std::function<HeadVerdict(const HttpRequest& head, CallInfo& info)> admit;

  // More fields for every answer, also of the transport's own errors, to a page of `origin` (""
  // where the request names none). Thread-safe. Empty = none.
  std::function<HttpFields(std::string_view origin)> fields_for_page;

  // Peers whose connections carry many clients, and have no limit per address.
  TrustedProxies proxies = {};
  // Connections of trusted proxies begin with a header of the PROXY protocol, which must be there
  // within header_timeout, and are closed without.
  bool proxy_protocol = false;

  absl::Duration idle_timeout = absl::Seconds(kMaxIdleSeconds);  // Between requests; announced.
  absl::Duration header_timeout = absl::Seconds(10);  // First byte to the last of the head.
  // A body and the reading of an answer may pause for this long, and in all take this long plus
  // the bytes that have come through at min_rate: trickling does not keep a request alive.
  absl::Duration transfer_grace = absl::Seconds(20);
  double min_rate = 16 * 1024;  // Bytes per second.
  // A streamed answer with nothing to say for this long sends its filler.
  absl::Duration stream_filler = absl::Seconds(15);
  // After this long a client that has shut its sending side is asked whether it still reads: soon,
  // as the device computes for a client that may have gone, but not before an answer that is about
  // to come.
  absl::Duration half_close_probe = absl::Milliseconds(5);
};

}  // namespace longview::server
