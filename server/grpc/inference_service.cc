#include "server/grpc/inference_service.h"

#include <utility>

#include "server/grpc/recorded.h"
#include "server/grpc/stream_infer.h"
#include "server/grpc/unary_call.h"

namespace longview::server {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

// The three probes are asked every few seconds and leave no line in log and metrics.

ServerUnaryReactor* InferenceServiceImpl::ServerLive(CallbackServerContext* context,
                                                     const inference::ServerLiveRequest*,
                                                     inference::ServerLiveResponse* response) {
  response->set_live(api_.ServerLive());
  ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

ServerUnaryReactor* InferenceServiceImpl::ServerReady(CallbackServerContext* context,
                                                      const inference::ServerReadyRequest*,
                                                      inference::ServerReadyResponse* response) {
  response->set_ready(api_.ServerReady());
  ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

ServerUnaryReactor* InferenceServiceImpl::ModelReady(CallbackServerContext* context,
                                                     const inference::ModelReadyRequest* request,
                                                     inference::ModelReadyResponse* response) {
  response->set_ready(api_.ModelReady(request->name(), request->version()).value_or(false));
  ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

ServerUnaryReactor* InferenceServiceImpl::ServerMetadata(
    CallbackServerContext* context, const inference::ServerMetadataRequest*,
    inference::ServerMetadataResponse* response) {
  return AnswerNow(gate_, *context, "ServerMetadata", response, [&](const CallInfo& info) {
    return Recorded<inference::ServerMetadataResponse>(api_, info, "", api_.ServerMetadata());
  });
}

ServerUnaryReactor* InferenceServiceImpl::ModelMetadata(
    CallbackServerContext* context, const inference::ModelMetadataRequest* request,
    inference::ModelMetadataResponse* response) {
  return AnswerNow(gate_, *context, "ModelMetadata", response, [&](const CallInfo& info) {
    return Recorded(api_, info, request->name(),
                    api_.ModelMetadata(request->name(), request->version()));
  });
}

ServerUnaryReactor* InferenceServiceImpl::ModelInfer(CallbackServerContext* context,
                                                     const inference::ModelInferRequest* request,
                                                     inference::ModelInferResponse* response) {
  return UnaryCall<inference::ModelInferResponse>::Run(
      gate_, *context, "ModelInfer", response, [&](const CallInfo& info, auto reply) {
        return api_.Infer(info, *request, std::move(reply));
      });
}

grpc::ServerBidiReactor<inference::ModelInferRequest, inference::ModelStreamInferResponse>*
InferenceServiceImpl::ModelStreamInfer(CallbackServerContext* context) {
  return StreamInfer::Start(api_, gate_, streams_, *context);
}

ServerUnaryReactor* InferenceServiceImpl::ModelConfig(CallbackServerContext* context,
                                                      const inference::ModelConfigRequest* request,
                                                      inference::ModelConfigResponse* response) {
  return AnswerNow(gate_, *context, "ModelConfig", response, [&](const CallInfo& info) {
    return Recorded(api_, info, request->name(),
                    api_.ModelConfig(request->name(), request->version()));
  });
}

ServerUnaryReactor* InferenceServiceImpl::ModelStatistics(
    CallbackServerContext* context, const inference::ModelStatisticsRequest* request,
    inference::ModelStatisticsResponse* response) {
  return AnswerNow(gate_, *context, "ModelStatistics", response, [&](const CallInfo& info) {
    return Recorded(api_, info, request->name(),
                    api_.ModelStatistics(request->name(), request->version()));
  });
}

ServerUnaryReactor* InferenceServiceImpl::RepositoryIndex(
    CallbackServerContext* context, const inference::RepositoryIndexRequest* request,
    inference::RepositoryIndexResponse* response) {
  return AnswerNow(gate_, *context, "RepositoryIndex", response, [&](const CallInfo& info) {
    return Recorded<inference::RepositoryIndexResponse>(api_, info, "",
                                                        api_.RepositoryIndex(request->ready()));
  });
}

ServerUnaryReactor* InferenceServiceImpl::RepositoryModelLoad(
    CallbackServerContext* context, const inference::RepositoryModelLoadRequest* request,
    inference::RepositoryModelLoadResponse* response) {
  using Response = inference::RepositoryModelLoadResponse;
  return UnaryCall<Response>::Run(
      gate_, *context, "RepositoryModelLoad", response,
      [&](const CallInfo& info, auto reply) -> Api::Pending {
        api_.RepositoryModelLoad(
            *request, RecordedReply<Response>(api_, info, request->model_name(), std::move(reply)));
        return nullptr;
      });
}

ServerUnaryReactor* InferenceServiceImpl::RepositoryModelUnload(
    CallbackServerContext* context, const inference::RepositoryModelUnloadRequest* request,
    inference::RepositoryModelUnloadResponse* response) {
  using Response = inference::RepositoryModelUnloadResponse;
  return UnaryCall<Response>::Run(
      gate_, *context, "RepositoryModelUnload", response,
      [&](const CallInfo& info, auto reply) -> Api::Pending {
        api_.RepositoryModelUnload(
            *request, RecordedReply<Response>(api_, info, request->model_name(), std::move(reply)));
        return nullptr;
      });
}

}  // namespace longview::server
