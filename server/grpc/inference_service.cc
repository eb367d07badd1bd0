#include "server/grpc/inference_service.h"

#include <utility>

#include "server/grpc/call_context.h"
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
  const CallInfo info = ReadCallInfo(*context, "ServerMetadata");
  return AnswerNow<inference::ServerMetadataResponse>(
      *context, response,
      Recorded<inference::ServerMetadataResponse>(api_, info, "", api_.ServerMetadata()));
}

ServerUnaryReactor* InferenceServiceImpl::ModelMetadata(
    CallbackServerContext* context, const inference::ModelMetadataRequest* request,
    inference::ModelMetadataResponse* response) {
  const CallInfo info = ReadCallInfo(*context, "ModelMetadata");
  return AnswerNow(*context, response,
                   Recorded(api_, info, request->name(),
                            api_.ModelMetadata(request->name(), request->version())));
}

ServerUnaryReactor* InferenceServiceImpl::ModelInfer(CallbackServerContext* context,
                                                     const inference::ModelInferRequest* request,
                                                     inference::ModelInferResponse* response) {
  return UnaryCall<inference::ModelInferResponse>::Run(response, [&](auto reply) {
    return api_.Infer(ReadCallInfo(*context, "ModelInfer"), *request, std::move(reply));
  });
}

grpc::ServerBidiReactor<inference::ModelInferRequest, inference::ModelStreamInferResponse>*
InferenceServiceImpl::ModelStreamInfer(CallbackServerContext* context) {
  return StreamInfer::Start(api_, streams_, ReadCallInfo(*context, "ModelStreamInfer"));
}

ServerUnaryReactor* InferenceServiceImpl::ModelConfig(CallbackServerContext* context,
                                                      const inference::ModelConfigRequest* request,
                                                      inference::ModelConfigResponse* response) {
  const CallInfo info = ReadCallInfo(*context, "ModelConfig");
  return AnswerNow(
      *context, response,
      Recorded(api_, info, request->name(), api_.ModelConfig(request->name(), request->version())));
}

ServerUnaryReactor* InferenceServiceImpl::ModelStatistics(
    CallbackServerContext* context, const inference::ModelStatisticsRequest* request,
    inference::ModelStatisticsResponse* response) {
  const CallInfo info = ReadCallInfo(*context, "ModelStatistics");
  return AnswerNow(*context, response,
                   Recorded(api_, info, request->name(),
                            api_.ModelStatistics(request->name(), request->version())));
}

ServerUnaryReactor* InferenceServiceImpl::RepositoryIndex(
    CallbackServerContext* context, const inference::RepositoryIndexRequest* request,
    inference::RepositoryIndexResponse* response) {
  const CallInfo info = ReadCallInfo(*context, "RepositoryIndex");
  return AnswerNow<inference::RepositoryIndexResponse>(
      *context, response,
      Recorded<inference::RepositoryIndexResponse>(api_, info, "",
                                                   api_.RepositoryIndex(request->ready())));
}

ServerUnaryReactor* InferenceServiceImpl::RepositoryModelLoad(
    CallbackServerContext* context, const inference::RepositoryModelLoadRequest* request,
    inference::RepositoryModelLoadResponse* response) {
  using Response = inference::RepositoryModelLoadResponse;
  return UnaryCall<Response>::Run(response, [&](auto reply) -> Api::Pending {
    api_.RepositoryModelLoad(
        *request, RecordedReply<Response>(api_, ReadCallInfo(*context, "RepositoryModelLoad"),
                                          request->model_name(), std::move(reply)));
    return nullptr;
  });
}

ServerUnaryReactor* InferenceServiceImpl::RepositoryModelUnload(
    CallbackServerContext* context, const inference::RepositoryModelUnloadRequest* request,
    inference::RepositoryModelUnloadResponse* response) {
  using Response = inference::RepositoryModelUnloadResponse;
  return UnaryCall<Response>::Run(response, [&](auto reply) -> Api::Pending {
    api_.RepositoryModelUnload(
        *request, RecordedReply<Response>(api_, ReadCallInfo(*context, "RepositoryModelUnload"),
                                          request->model_name(), std::move(reply)));
    return nullptr;
  });
}

}  // namespace longview::server
