#include <google/protobuf/empty.pb.h>

#include <utility>

#include "inference/grpc_service.pb.h"
#include "server/api/models/unserved.h"
#include "server/grpc/recorded.h"
#include "server/grpc/services.h"
#include "server/grpc/stream_infer.h"

namespace longview::server {
namespace {

// The three probes are asked every few seconds and leave no line in log and metrics.
void AddProbes(Api& api, ByteService& service) {
  service.AddImmediate<inference::ServerLiveRequest, inference::ServerLiveResponse>(
      "ServerLive",
      [&api](const CallInfo&, const inference::ServerLiveRequest&) {
        inference::ServerLiveResponse response;
        response.set_live(api.ServerLive());
        return absl::StatusOr<inference::ServerLiveResponse>(response);
      },
      Access::kAnybody);
  service.AddImmediate<inference::ServerReadyRequest, inference::ServerReadyResponse>(
      "ServerReady",
      [&api](const CallInfo&, const inference::ServerReadyRequest&) {
        inference::ServerReadyResponse response;
        response.set_ready(api.ServerReady());
        return absl::StatusOr<inference::ServerReadyResponse>(response);
      },
      Access::kAnybody);
  service.AddImmediate<inference::ModelReadyRequest, inference::ModelReadyResponse>(
      "ModelReady",
      [&api](const CallInfo&, const inference::ModelReadyRequest& request) {
        inference::ModelReadyResponse response;
        response.set_ready(api.ModelReady(request.name(), request.version()).value_or(false));
        return absl::StatusOr<inference::ModelReadyResponse>(response);
      },
      Access::kAnybody);
}

void AddDescriptions(Api& api, ByteService& service) {
  service.AddImmediate<inference::ServerMetadataRequest, inference::ServerMetadataResponse>(
      "ServerMetadata", [&api](const CallInfo& info, const inference::ServerMetadataRequest&) {
        return Recorded<inference::ServerMetadataResponse>(api, info, "", api.ServerMetadata());
      });
  service.AddImmediate<inference::ModelMetadataRequest, inference::ModelMetadataResponse>(
      "ModelMetadata",
      [&api](const CallInfo& info, const inference::ModelMetadataRequest& request) {
        return Recorded(api, info, request.name(),
                        api.ModelMetadata(request.name(), request.version()));
      });
  service.AddImmediate<inference::ModelConfigRequest, inference::ModelConfigResponse>(
      "ModelConfig", [&api](const CallInfo& info, const inference::ModelConfigRequest& request) {
        return Recorded(api, info, request.name(),
                        api.ModelConfig(request.name(), request.version()));
      });
  service.AddImmediate<inference::ModelStatisticsRequest, inference::ModelStatisticsResponse>(
      "ModelStatistics",
      [&api](const CallInfo& info, const inference::ModelStatisticsRequest& request) {
        return Recorded(api, info, request.name(),
                        api.ModelStatistics(request.name(), request.version()));
      });
}

void AddRepository(Api& api, ByteService& service) {
  service.AddImmediate<inference::RepositoryIndexRequest, inference::RepositoryIndexResponse>(
      "RepositoryIndex",
      [&api](const CallInfo& info, const inference::RepositoryIndexRequest& request) {
        return Recorded<inference::RepositoryIndexResponse>(api, info, "",
                                                            api.RepositoryIndex(request.ready()));
      });
  using LoadResponse = inference::RepositoryModelLoadResponse;
  service.AddUnary<inference::RepositoryModelLoadRequest, LoadResponse>(
      "RepositoryModelLoad",
      [&api](const CallInfo& info, const inference::RepositoryModelLoadRequest& request,
             Reply<LoadResponse> reply) {
        api.RepositoryModelLoad(
            info, request,
            RecordedReply<LoadResponse>(api, info, request.model_name(), std::move(reply)));
        return Api::Pending();
      });
  using UnloadResponse = inference::RepositoryModelUnloadResponse;
  service.AddUnary<inference::RepositoryModelUnloadRequest, UnloadResponse>(
      "RepositoryModelUnload",
      [&api](const CallInfo& info, const inference::RepositoryModelUnloadRequest& request,
             Reply<UnloadResponse> reply) {
        api.RepositoryModelUnload(
            info, request,
            RecordedReply<UnloadResponse>(api, info, request.model_name(), std::move(reply)));
        return Api::Pending();
      });
}

// Methods of Triton's protocol: clients that call them read what to do instead.
void AddUnserved(Api& api, ByteService& service) {
  for (const char* method : UnservedMethods()) {
    // An empty message takes the fields of any.
    service.AddImmediate<google::protobuf::Empty, google::protobuf::Empty>(
        method, [&api, method](const CallInfo& info, const google::protobuf::Empty&) {
          return Recorded<google::protobuf::Empty>(api, info, "", UnservedMethod(method));
        });
  }
}

}  // namespace

void AddInferenceMethods(Api& api, OpenStreams& streams, ByteService& service) {
  AddProbes(api, service);
  AddDescriptions(api, service);
  AddRepository(api, service);
  AddUnserved(api, service);
  service.AddUnary("ModelInfer", api, &Api::Infer);
  service.Add("ModelStreamInfer",
              [&api, &streams, &service](grpc::CallbackServerContext& context) -> ByteCall* {
                return StreamInfer::New(api, streams, service.tools(), context);
              });
}

}  // namespace longview::server
