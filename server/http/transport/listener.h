// Accepts HTTP connections on one port and runs them on its own few threads.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/transport/options.h"

namespace longview::server {

// Start and Stop belong to one thread.
class Listener {
 public:
  explicit Listener(TransportOptions options);
  ~Listener();  // Stop(now).

  // The bound port. UNAVAILABLE names address and cause.
  absl::StatusOr<int> Start();

  // Everything is still accepted, but each answer says that it is the last of its connection, so
  // that clients go elsewhere.
  void Leave();

  // Accepts no more; connections end after the answer under way. At `deadline` what still runs is
  // answered UNAVAILABLE, and a second later all are cut.
  void Stop(absl::Time deadline);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace longview::server
