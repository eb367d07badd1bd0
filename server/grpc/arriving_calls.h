// Counts calls from the moment gRPC has read their headers.
//
// Their handlers run only when the thread that reads has nothing more to read, which a client that
// sends fast enough can put off for ever.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_context.h>

#include "server/grpc/connections.h"

namespace longview::server {

// For ServerBuilder, which owns it. Borrows the table.
class ArrivingCalls final : public grpc::ContextAllocator {
 public:
  explicit ArrivingCalls(Connections& connections) : connections_(connections) {}

  grpc::CallbackServerContext* NewCallbackServerContext() override {
    connections_.Arrive();
    return new grpc::CallbackServerContext;
  }
  // For a call whose method does not exist: no handler of ours begins it, so it counts to its end.
  grpc::GenericCallbackServerContext* NewGenericCallbackServerContext() override {
    connections_.Arrive();
    return new grpc::GenericCallbackServerContext;
  }
  // Generic ones come by here, too.
  void Release(grpc::CallbackServerContext* context) override {
    if (dynamic_cast<grpc::GenericCallbackServerContext*>(context) != nullptr) {
      connections_.Arrived();
    }
    delete context;
  }

 private:
  Connections& connections_;
};

}  // namespace longview::server
