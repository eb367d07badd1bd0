// The HTTP front: Open Inference Protocol under /v2, typed and OpenAI calls under /v1,
// operations and the console page, all on one port.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/api/api.h"
#include "server/http/transport/options.h"
#include "server/log/log.h"
#include "server/metrics/metrics.h"
#include "server/security/api_keys.h"
#include "server/security/client_address.h"

namespace longview::server {

struct HttpServerOptions {
  TransportOptions transport;
  std::string version;  // Shown by /version.
  std::string commit;
  // Null: calls need no key. Otherwise all do but health, probes, /metrics, /version and the
  // console page. Outlives the server.
  const ApiKeys* keys = nullptr;
  TrustedProxies proxies;  // Proxies whose X-Forwarded-For is believed.
  bool admin = false;      // Serves /livez, /readyz and /metrics, nothing else.
  // The server's names besides addresses and localhost: what `Host` may be where models are
  // loaded and unloaded.
  std::vector<std::string> names;
  // Origins of other sites whose pages may call, as ParsePageOrigins gives them.
  std::vector<std::string> cors_origins;
  bool refuse_token_ids = false;  // On /v1/embeddings.
  std::string search_folder;      // Its text files are served by /v1/search; empty: none.
  // For what clients should be told; null: nobody reads it. Outlives the server.
  Log* log = nullptr;
};

// Start and Stop belong to one thread. Borrowed collaborators outlive it; calls that are
// under way hold on to it, so the engine must have answered them before it dies.
class HttpServer {
 public:
  HttpServer(Api& api, const Metrics& metrics, HttpServerOptions options);
  ~HttpServer();

  // The bound port; UNAVAILABLE names address and cause.
  absl::StatusOr<int> Start();

  // From here on every answer says `Connection: close`. Everything is still accepted.
  void Drain();

  // Closes the listener; answers under way may finish until `deadline`, the rest is cut and
  // cancelled.
  void Stop(absl::Time deadline);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace longview::server
