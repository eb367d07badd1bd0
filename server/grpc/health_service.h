// grpc.health.v1.Health with Watch.
//
// Names: "" and "readiness" (start-up models warm and not draining), "liveness", each model's
// name, each gRPC service's full name (as ""). Models come and go, so that the names are
// looked up in the store instead of being set one by one.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "grpc/health/v1/health.grpc.pb.h"
#include "server/api/api.h"

namespace longview::server {

// Thread-safe. Borrows the Api. One thread compares states while somebody watches; it sleeps
// otherwise.
class HealthService final : public grpc::health::v1::Health::CallbackService {
 public:
  using ServingStatus = grpc::health::v1::HealthCheckResponse::ServingStatus;

  // `services`: full names of the gRPC services of this server.
  HealthService(Api& api, std::vector<std::string> services);
  ~HealthService() override;

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const grpc::health::v1::HealthCheckRequest* request,
                                  grpc::health::v1::HealthCheckResponse* response) override;
  grpc::ServerWriteReactor<grpc::health::v1::HealthCheckResponse>* Watch(
      grpc::CallbackServerContext* context,
      const grpc::health::v1::HealthCheckRequest* request) override;

  // Ends all watches with UNAVAILABLE and refuses new ones, so that they do not hold up the
  // server's end.
  void EndWatches();

 private:
  class Watcher;

  // Empty for an unknown name.
  std::optional<ServingStatus> StatusOf(const std::string& name) const;
  void Compare();
  void Remove(Watcher* watcher);

  Api& api_;
  const std::vector<std::string> services_;

  std::mutex mutex_;  // Guards all below. Taken before a watcher's own.
  std::condition_variable changed_;
  std::set<Watcher*> watchers_;
  bool ended_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace longview::server
