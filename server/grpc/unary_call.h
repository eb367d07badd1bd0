// A unary call whose answer comes later, from another thread.
#pragma once

#include <grpcpp/grpcpp.h>

#include <utility>

#include "server/api/api.h"
#include "server/status_map_grpc.h"

namespace longview::server {

// Owns itself from Run to OnDone. The library binds the reactor only after the handler has
// returned it: an answer that comes earlier waits inside the library, and neither OnCancel
// nor OnDone can run before `pending_` is set.
template <typename Response>
class UnaryCall : public grpc::ServerUnaryReactor {
 public:
  // `start(reply)` begins the work and returns its Api::Pending. `response` is the library's.
  template <typename Start>
  static grpc::ServerUnaryReactor* Run(Response* response, Start start) {
    auto* call = new UnaryCall();
    call->pending_ = start([call, response](absl::StatusOr<Response> result) {
      if (result.ok()) *response = *std::move(result);
      call->Finish(ToGrpcStatus(result.status()));
    });
    return call;
  }

  void OnCancel() override { Api::Cancel(pending_); }
  void OnDone() override { delete this; }

 private:
  UnaryCall() = default;

  Api::Pending pending_;
};

// A call answered at once.
template <typename Response>
grpc::ServerUnaryReactor* AnswerNow(grpc::CallbackServerContext& context, Response* response,
                                    absl::StatusOr<Response> result) {
  if (result.ok()) *response = *std::move(result);
  grpc::ServerUnaryReactor* reactor = context.DefaultReactor();
  reactor->Finish(ToGrpcStatus(result.status()));
  return reactor;
}

}  // namespace longview::server
