// A unary call whose answer comes later, from another thread.
#pragma once

#include <grpcpp/grpcpp.h>

#include <utility>

#include "server/api/api.h"
#include "server/grpc/call_gate.h"
#include "server/status_map_grpc.h"

namespace longview::server {

// Owns itself from Run to OnDone. The library binds the reactor only after the handler has
// returned it: an answer that comes earlier waits inside the library, and neither OnCancel
// nor OnDone can run before `pending_` is set.
template <typename Response>
class UnaryCall : public grpc::ServerUnaryReactor {
 public:
  // `start(info, reply)` begins the work of an admitted call and returns its Api::Pending.
  // `response` is the library's.
  template <typename Start>
  static grpc::ServerUnaryReactor* Run(const CallGate& gate, grpc::CallbackServerContext& context,
                                       std::string_view method, Response* response, Start start) {
    auto* call = new UnaryCall();
    const absl::StatusOr<CallInfo> info = gate.Admit(context, method);
    if (!info.ok()) {
      call->Finish(ToGrpcStatus(info.status()));
      return call;
    }
    call->pending_ = start(*info, [call, response](absl::StatusOr<Response> result) {
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

// A call that needs no key, answered at once.
template <typename Response>
grpc::ServerUnaryReactor* AnswerNow(grpc::CallbackServerContext& context, Response* response,
                                    absl::StatusOr<Response> result) {
  if (result.ok()) *response = *std::move(result);
  grpc::ServerUnaryReactor* reactor = context.DefaultReactor();
  reactor->Finish(ToGrpcStatus(result.status()));
  return reactor;
}

// A call answered at once, by `answer(info)` if it is admitted.
template <typename Response, typename Answer>
grpc::ServerUnaryReactor* AnswerNow(const CallGate& gate, grpc::CallbackServerContext& context,
                                    std::string_view method, Response* response, Answer answer) {
  const absl::StatusOr<CallInfo> info = gate.Admit(context, method);
  return AnswerNow<Response>(context, response, info.ok() ? answer(*info) : info.status());
}

}  // namespace longview::server
