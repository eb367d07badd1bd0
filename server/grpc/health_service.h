// grpc.health.v1.Health with Watch and List.
//
// Names: "" and "readiness" (start-up models warm and not draining), "liveness", each model's
// name, each gRPC service's full name (as ""). Models come and go, so that the names are
// looked up in the store instead of being set one by one.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpc/health/v1/health.pb.h"
#include "server/api/api.h"
#include "server/grpc/byte_service.h"
#include "server/scheduler/steady_cond_var.h"

namespace longview::server {

// Thread-safe. Borrows the Api. One thread tells watchers what has changed: at once what the server
// does, within a second what devices and disks do.
class HealthService {
 public:
  using ServingStatus = grpc::health::v1::HealthCheckResponse::ServingStatus;

  // `services`: full names of the gRPC services of this server.
  HealthService(Api& api, std::vector<std::string> services);
  ~HealthService();

  void AddMethods(ByteService& service);

  // Ends all watches with UNAVAILABLE and refuses new ones, so that they do not hold up the
  // server's end.
  void EndWatches();

 private:
  class Watcher;

  absl::StatusOr<grpc::health::v1::HealthCheckResponse> Check(const std::string& name) const;
  absl::StatusOr<grpc::health::v1::HealthListResponse> List() const;
  // Empty for an unknown name.
  std::optional<ServingStatus> StatusOf(const std::string& name) const;
  void Add(Watcher* watcher);
  void Remove(Watcher* watcher);
  void Compare();

  Api& api_;
  const std::vector<std::string> services_;

  absl::Mutex mutex_;  // Taken before a watcher's own.
  SteadyCondVar changed_;
  std::set<Watcher*> watchers_ ABSL_GUARDED_BY(mutex_);
  bool news_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  Api::StateSubscription subscription_;
  std::thread thread_;
};

}  // namespace longview::server
