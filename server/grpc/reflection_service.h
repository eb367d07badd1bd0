// Server reflection, v1 and v1alpha: what tools such as grpcurl learn the services from.
//
// gRPC 1.51 brings v1alpha alone, as a service that cannot be registered by another name. The
// messages of both are the same bytes, so that one implementation serves them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/grpc/byte_service.h"
#include "server/grpc/open_streams.h"

namespace longview::server {

// One stream of questions. A key is needed as for any call.
class ReflectionCall final : public ByteCall, public EndableStream {
 public:
  // `services`: full names of the services of this server; outlives the call.
  ReflectionCall(const std::vector<std::string>& services, OpenStreams& streams,
                 const CallTools& tools, grpc::CallbackServerContext& context);

  void OnWriteDone(bool ok) override;
  void EndWhenIdle() override;
  void EndNow(const grpc::Status& status) override;

 private:
  void Begin() override;
  void OnMessage(grpc::ByteBuffer& bytes) override;
  void OnNoMessage() override;
  void Delete() override;

  void End(const grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::vector<std::string>& services_;
  OpenStreams& streams_;

  absl::Mutex mutex_;
  bool answering_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  // The end, once the answer is written.
  std::optional<grpc::Status> ending_ ABSL_GUARDED_BY(mutex_);
};

// Adds the method of the service, whichever of the two it is. Everything is borrowed.
void AddReflection(const std::vector<std::string>& services, OpenStreams& streams,
                   ByteService& service);

}  // namespace longview::server
