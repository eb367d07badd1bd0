#include "server/grpc/parse_failures.h"

namespace longview::server {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerRpcInfo;

// One per call that begins with exactly one message.
class ParseFailureInterceptor : public Interceptor {
 public:
  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE)) {
      unreadable_ = methods->GetRecvMessage() == nullptr;
    }
    if (unreadable_ &&
        methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      methods->ModifySendStatus(
          {grpc::StatusCode::INTERNAL, "the request does not parse as the method's message"});
    }
    methods->Proceed();
  }

 private:
  bool unreadable_ = false;
};

class Factory : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  Interceptor* CreateServerInterceptor(ServerRpcInfo* info) override {
    // A stream of requests ends with a message that is not there: no failure.
    const bool one_request = info->type() == ServerRpcInfo::Type::UNARY ||
                             info->type() == ServerRpcInfo::Type::SERVER_STREAMING;
    return one_request ? new ParseFailureInterceptor() : nullptr;
  }
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> ParseFailures() {
  return std::make_unique<Factory>();
}

}  // namespace longview::server
