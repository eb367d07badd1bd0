// A gRPC service whose methods are served as streams of bytes; reflection lists it by its name.
#pragma once

#include <grpcpp/impl/codegen/service_type.h>

#include <deque>
#include <functional>
#include <string>

#include "server/grpc/answer_call.h"
#include "server/grpc/byte_call.h"
#include "server/grpc/unary_call.h"

namespace longview::server {

// Methods are added before the service is registered. Borrows the tools.
class ByteService final : public grpc::Service {
 public:
  // `name`: "longview.v1.TextService".
  ByteService(const CallTools& tools, std::string name) : tools_(tools), name_(std::move(name)) {}

  const CallTools& tools() const { return tools_; }

  // `handler` makes the call of a method; it starts it, too.
  void Add(const char* method, std::function<ByteCall*(grpc::CallbackServerContext&)> handler);

  // A unary method: `start(info, request, reply)` as in UnaryCall.
  template <typename Request, typename Response, typename Start>
  void AddUnary(const char* method, Start start, Access access = Access::kKey) {
    Add(method,
        [this, method, access,
         start = std::move(start)](grpc::CallbackServerContext& context) -> ByteCall* {
          return new UnaryCall<Request, Response, Start>(tools_, context, method, access, start);
        });
  }

  // A unary method that is a call of the Api.
  template <typename Request, typename Response>
  void AddUnary(const char* method, Api& api,
                Api::Pending (Api::*call)(const CallInfo&, const Request&, Reply<Response>)) {
    AddUnary<Request, Response>(
        method, [&api, call](const CallInfo& info, const Request& request, Reply<Response> reply) {
          return (api.*call)(info, request, std::move(reply));
        });
  }

  // A unary method answered at once by `answer(info, request)`, an absl::StatusOr<Response>.
  template <typename Request, typename Response, typename Answer>
  void AddImmediate(const char* method, Answer answer, Access access = Access::kKey) {
    AddUnary<Request, Response>(
        method,
        [answer = std::move(answer)](const CallInfo& info, const Request& request,
                                     Reply<Response> reply) -> Api::Pending {
          reply(answer(info, request));
          return nullptr;
        },
        access);
  }

  // A server-streaming method: `start(info, request, on_ready)` as in AnswerCall.
  template <typename Request, typename Message, typename Start>
  void AddAnswers(const char* method, Start start) {
    Add(method,
        [this, method,
         start = std::move(start)](grpc::CallbackServerContext& context) -> ByteCall* {
          return AnswerCall<Request, Message, Start>::New(tools_, context, method, start);
        });
  }

 private:
  const CallTools& tools_;
  const std::string name_;
  std::deque<std::string> paths_;  // The library keeps pointers to them.
};

}  // namespace longview::server
