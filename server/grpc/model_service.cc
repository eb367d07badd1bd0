#include <utility>

#include "longview/v1/models.pb.h"
#include "server/grpc/recorded.h"
#include "server/grpc/services.h"

namespace longview::server {

namespace v1 = longview::v1;

void AddModelMethods(Api& api, ByteService& service) {
  service.AddImmediate<v1::ListModelsRequest, v1::ListModelsResponse>(
      "ListModels", [&api](const CallInfo& info, const v1::ListModelsRequest&) {
        return Recorded(api, info, "", api.ListModels());
      });
  service.AddImmediate<v1::GetModelRequest, v1::Model>(
      "GetModel", [&api](const CallInfo& info, const v1::GetModelRequest& request) {
        return Recorded(api, info, request.model(), api.GetModel(request));
      });
  service.AddUnary<v1::LoadModelRequest, v1::Model>(
      "LoadModel",
      [&api](const CallInfo& info, const v1::LoadModelRequest& request, Reply<v1::Model> reply) {
        api.LoadModel(info, request,
                      RecordedReply<v1::Model>(api, info, request.model(), std::move(reply)));
        return Api::Pending();
      });
  service.AddUnary<v1::UnloadModelRequest, v1::Model>(
      "UnloadModel",
      [&api](const CallInfo& info, const v1::UnloadModelRequest& request, Reply<v1::Model> reply) {
        api.UnloadModel(info, request,
                        RecordedReply<v1::Model>(api, info, request.model(), std::move(reply)));
        return Api::Pending();
      });
  service.AddUnary("Estimate", api, &Api::Estimate);
}

}  // namespace longview::server
