// longview.v1.VisionService over the Api.
#pragma once

#include "longview/v1/vision.grpc.pb.h"
#include "server/api/api.h"

namespace longview::server {

// Thread-safe. Borrows the Api.
class VisionServiceImpl final : public longview::v1::VisionService::CallbackService {
 public:
  explicit VisionServiceImpl(Api& api) : api_(api) {}

  grpc::ServerUnaryReactor* ClassifyImage(grpc::CallbackServerContext* context,
                                          const longview::v1::ClassifyImageRequest* request,
                                          longview::v1::ClassifyResponse* response) override;
  grpc::ServerUnaryReactor* DetectObjects(grpc::CallbackServerContext* context,
                                          const longview::v1::DetectObjectsRequest* request,
                                          longview::v1::DetectObjectsResponse* response) override;
  grpc::ServerUnaryReactor* ExtractFeatures(
      grpc::CallbackServerContext* context, const longview::v1::ExtractFeaturesRequest* request,
      longview::v1::ExtractFeaturesResponse* response) override;

 private:
  Api& api_;
};

}  // namespace longview::server
