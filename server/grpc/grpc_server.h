// The gRPC listener: every service of api.md on one port.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/api/api.h"
#include "server/limits/byte_budget.h"
#include "server/limits/connection_ends.h"
#include "server/limits/connection_ledger.h"
#include "server/security/api_keys.h"
#include "server/security/client_address.h"
#include "server/security/tls_material.h"

namespace longview::server {

struct GrpcServerOptions {
  std::string host = "127.0.0.1";
  int port = 9000;  // 0 = a free one.
  size_t max_message_bytes = 64u << 20;
  // Connections are renewed after this, calls under way finish; zero = never.
  absl::Duration max_connection_age = absl::Seconds(600);
  int max_concurrent_streams = 2048;  // Per connection.
  const TlsSource* tls = nullptr;     // Null = plaintext. Outlives the server.
  ConnectionLimits connections;
  // Budget of requests and answers in memory; required. Outlives the server and every answer that
  // the Api gives, also those that come after Stop.
  ByteBudget* bytes = nullptr;
  // A message, either way, may take this long plus its bytes at 16 KiB a second.
  absl::Duration transfer_grace = absl::Seconds(20);
  // An address that floods the port with calls is refused for so long.
  absl::Duration shut_out = absl::Seconds(1);
  // Connections of trusted proxies begin with a header of the PROXY protocol.
  bool proxy_protocol = false;
  absl::Duration proxy_header_timeout = absl::Seconds(10);
  ConnectionEnds ends = {};  // Outlives the server.
};

// Start and Stop from one thread. Borrows the keys and the Api, which must go on answering until
// Stop has returned: calls that are cut off still end through it.
class GrpcServer {
 public:
  // `keys` null: calls need none.
  explicit GrpcServer(Api& api, const ApiKeys* keys = nullptr, TrustedProxies proxies = {});
  ~GrpcServer();

  // The bound port. UNAVAILABLE if the port cannot be had. Once only.
  absl::StatusOr<int> Start(const GrpcServerOptions& options);

  // Closes the listener, ends idle streams and watches, lets work in flight finish until
  // `deadline`; what is left then ends with UNAVAILABLE and a delay, and is cut a second later if
  // its client does not take that. Blocks. The destructor does it with
  // no time left.
  void Stop(absl::Time deadline);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace longview::server
