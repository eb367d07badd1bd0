#include "server/grpc/reflection_guard.h"

#include <grpc/grpc.h>
#include <grpcpp/server_context.h>

#include <string>
#include <string_view>

#include "server/grpc/call_context.h"

namespace longview::server {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerRpcInfo;

constexpr std::string_view kReflection = "/grpc.reflection.";

class Guard : public Interceptor {
 public:
  Guard(const ApiKeys& keys, grpc::ServerContextBase& context) : keys_(keys), context_(context) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) {
      Check();
    }
    methods->Proceed();
  }

 private:
  // Ending the call here sends the status at once; the service then reads the end of a stream.
  void Check() {
    const auto client = keys_.Authenticate(Metadata(context_, "authorization"));
    if (client.ok()) return;
    grpc_call_cancel_with_status(context_.c_call(), GRPC_STATUS_UNAUTHENTICATED,
                                 std::string(client.status().message()).c_str(), nullptr);
  }

  const ApiKeys& keys_;
  grpc::ServerContextBase& context_;
};

class Factory : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Factory(const ApiKeys& keys) : keys_(keys) {}

  Interceptor* CreateServerInterceptor(ServerRpcInfo* info) override {
    const bool reflection = std::string_view(info->method()).starts_with(kReflection);
    return reflection ? new Guard(keys_, *info->server_context()) : nullptr;
  }

 private:
  const ApiKeys& keys_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> ReflectionGuard(
    const ApiKeys& keys) {
  return std::make_unique<Factory>(keys);
}

}  // namespace longview::server
