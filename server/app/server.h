// The whole server, put together: models, engine, API, transports; starts, drains, stops.
#pragma once

#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/config/config.h"
#include "server/log/log.h"
#include "server/security/security.h"
#include "server/store/model_store_impl.h"

namespace longview::server {

struct BoundPorts {
  int grpc = -1;  // -1 = off.
  int http = -1;
  int admin = -1;
};

// One per process in practice, but nothing here is global. All calls from one thread.
class Server {
 public:
  // Borrows the log and, if it is there, `security`: without it there are no keys and no TLS.
  // `load` makes a model of a directory on a device; injected, so that benchmarks can serve a model
  // that does nothing.
  Server(const Config& config, Log& log, const Security* security, LoadFunction load);
  ~Server();

  // Opens the ports and begins to load the start-up models in the background; `started` runs
  // once, on another thread: OK when all are warm, else the first failure.
  // NOT_FOUND: no models; UNAVAILABLE: a port cannot be had.
  absl::Status Start(absl::AnyInvocable<void(absl::Status)> started);
  BoundPorts ports() const;

  // Every start-up model is warm: readiness says so from here on.
  void BeReady();
  // Readiness says no; everything is still accepted.
  void Drain();
  // New calls are refused, work in flight may finish until `deadline`. Blocks.
  void Stop(absl::Time deadline);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace longview::server
