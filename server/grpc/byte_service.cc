#include "server/grpc/byte_service.h"

#include <grpcpp/impl/codegen/rpc_service_method.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace longview::server {

void ByteService::Add(const char* method,
                      std::function<ByteCall*(grpc::CallbackServerContext&)> handler) {
  using grpc::internal::CallbackBidiHandler;
  using grpc::internal::RpcMethod;
  using grpc::internal::RpcServiceMethod;
  const int index = static_cast<int>(paths_.size());
  paths_.push_back(absl::StrCat("/", name_, "/", method));
  // Whatever the method's own type: the library then hands messages over when they are asked for.
  AddMethod(new RpcServiceMethod(paths_.back().c_str(), RpcMethod::BIDI_STREAMING, nullptr));
  auto run = [handler = std::move(handler)](grpc::CallbackServerContext* context) {
    return ByteCall::Run(handler(*context));
  };
  MarkMethodCallback(index,
                     new CallbackBidiHandler<grpc::ByteBuffer, grpc::ByteBuffer>(std::move(run)));
}

}  // namespace longview::server
