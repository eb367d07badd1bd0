#include "server/grpc/vision_service.h"

#include <utility>

#include "server/grpc/unary_call.h"

namespace longview::server {

grpc::ServerUnaryReactor* VisionServiceImpl::ClassifyImage(
    grpc::CallbackServerContext* context, const longview::v1::ClassifyImageRequest* request,
    longview::v1::ClassifyResponse* response) {
  return UnaryCall<longview::v1::ClassifyResponse>::Run(
      gate_, *context, "ClassifyImage", response, [&](const CallInfo& info, auto reply) {
        return api_.ClassifyImage(info, *request, std::move(reply));
      });
}

grpc::ServerUnaryReactor* VisionServiceImpl::DetectObjects(
    grpc::CallbackServerContext* context, const longview::v1::DetectObjectsRequest* request,
    longview::v1::DetectObjectsResponse* response) {
  return UnaryCall<longview::v1::DetectObjectsResponse>::Run(
      gate_, *context, "DetectObjects", response, [&](const CallInfo& info, auto reply) {
        return api_.DetectObjects(info, *request, std::move(reply));
      });
}

grpc::ServerUnaryReactor* VisionServiceImpl::ExtractFeatures(
    grpc::CallbackServerContext* context, const longview::v1::ExtractFeaturesRequest* request,
    longview::v1::ExtractFeaturesResponse* response) {
  return UnaryCall<longview::v1::ExtractFeaturesResponse>::Run(
      gate_, *context, "ExtractFeatures", response, [&](const CallInfo& info, auto reply) {
        return api_.ExtractFeatures(info, *request, std::move(reply));
      });
}

}  // namespace longview::server
