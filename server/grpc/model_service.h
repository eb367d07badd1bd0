// longview.v1.ModelService over the Api.
#pragma once

#include "longview/v1/models.grpc.pb.h"
#include "server/api/api.h"
#include "server/grpc/call_gate.h"

namespace longview::server {

// Thread-safe; handlers only hand over and return. Borrows the Api and the gate.
class ModelServiceImpl final : public longview::v1::ModelService::CallbackService {
 public:
  ModelServiceImpl(Api& api, const CallGate& gate) : api_(api), gate_(gate) {}

  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const longview::v1::ListModelsRequest* request,
                                       longview::v1::ListModelsResponse* response) override;
  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* context,
                                     const longview::v1::GetModelRequest* request,
                                     longview::v1::Model* response) override;
  grpc::ServerUnaryReactor* LoadModel(grpc::CallbackServerContext* context,
                                      const longview::v1::LoadModelRequest* request,
                                      longview::v1::Model* response) override;
  grpc::ServerUnaryReactor* UnloadModel(grpc::CallbackServerContext* context,
                                        const longview::v1::UnloadModelRequest* request,
                                        longview::v1::Model* response) override;
  grpc::ServerUnaryReactor* Estimate(grpc::CallbackServerContext* context,
                                     const longview::v1::EstimateRequest* request,
                                     longview::v1::EstimateResponse* response) override;

 private:
  Api& api_;
  const CallGate& gate_;
};

}  // namespace longview::server
