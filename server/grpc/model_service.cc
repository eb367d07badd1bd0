#include "server/grpc/model_service.h"

#include <utility>

#include "server/grpc/recorded.h"
#include "server/grpc/unary_call.h"

namespace longview::server {

using longview::v1::Model;

grpc::ServerUnaryReactor* ModelServiceImpl::ListModels(grpc::CallbackServerContext* context,
                                                       const longview::v1::ListModelsRequest*,
                                                       longview::v1::ListModelsResponse* response) {
  return AnswerNow(gate_, *context, "ListModels", response, [&](const CallInfo& info) {
    return Recorded(api_, info, "", api_.ListModels());
  });
}

grpc::ServerUnaryReactor* ModelServiceImpl::GetModel(grpc::CallbackServerContext* context,
                                                     const longview::v1::GetModelRequest* request,
                                                     Model* response) {
  return AnswerNow(gate_, *context, "GetModel", response, [&](const CallInfo& info) {
    return Recorded(api_, info, request->model(), api_.GetModel(*request));
  });
}

grpc::ServerUnaryReactor* ModelServiceImpl::LoadModel(grpc::CallbackServerContext* context,
                                                      const longview::v1::LoadModelRequest* request,
                                                      Model* response) {
  return UnaryCall<Model>::Run(
      gate_, *context, "LoadModel", response,
      [&](const CallInfo& info, auto reply) -> Api::Pending {
        api_.LoadModel(*request,
                       RecordedReply<Model>(api_, info, request->model(), std::move(reply)));
        return nullptr;
      });
}

grpc::ServerUnaryReactor* ModelServiceImpl::UnloadModel(
    grpc::CallbackServerContext* context, const longview::v1::UnloadModelRequest* request,
    Model* response) {
  return UnaryCall<Model>::Run(
      gate_, *context, "UnloadModel", response,
      [&](const CallInfo& info, auto reply) -> Api::Pending {
        api_.UnloadModel(*request,
                         RecordedReply<Model>(api_, info, request->model(), std::move(reply)));
        return nullptr;
      });
}

grpc::ServerUnaryReactor* ModelServiceImpl::Estimate(grpc::CallbackServerContext* context,
                                                     const longview::v1::EstimateRequest* request,
                                                     longview::v1::EstimateResponse* response) {
  return UnaryCall<longview::v1::EstimateResponse>::Run(
      gate_, *context, "Estimate", response, [&](const CallInfo& info, auto reply) {
        return api_.Estimate(info, *request, std::move(reply));
      });
}

}  // namespace longview::server
