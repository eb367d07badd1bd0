#include "server/grpc/vision_service.h"

#include "server/grpc/call_context.h"
#include "server/grpc/unary_call.h"

namespace longview::server {

using models::Task;

grpc::ServerUnaryReactor* VisionServiceImpl::ClassifyImage(
    grpc::CallbackServerContext* context, const longview::v1::ClassifyImageRequest* request,
    longview::v1::ClassifyResponse* response) {
  return AnswerNow<longview::v1::ClassifyResponse>(
      *context, response,
      api_.RefuseTask(ReadCallInfo(*context, "ClassifyImage"), request->model(), request->version(),
                      Task::kImageClassification));
}

grpc::ServerUnaryReactor* VisionServiceImpl::DetectObjects(
    grpc::CallbackServerContext* context, const longview::v1::DetectObjectsRequest* request,
    longview::v1::DetectObjectsResponse* response) {
  return AnswerNow<longview::v1::DetectObjectsResponse>(
      *context, response,
      api_.RefuseTask(ReadCallInfo(*context, "DetectObjects"), request->model(), request->version(),
                      Task::kObjectDetection));
}

grpc::ServerUnaryReactor* VisionServiceImpl::ExtractFeatures(
    grpc::CallbackServerContext* context, const longview::v1::ExtractFeaturesRequest* request,
    longview::v1::ExtractFeaturesResponse* response) {
  return AnswerNow<longview::v1::ExtractFeaturesResponse>(
      *context, response,
      api_.RefuseTask(ReadCallInfo(*context, "ExtractFeatures"), request->model(),
                      request->version(), Task::kImageFeatures));
}

}  // namespace longview::server
