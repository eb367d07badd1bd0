// longview.v1.VisionService over the Api.
#pragma once

#include "longview/v1/vision.grpc.pb.h"
#include "server/api/api.h"
#include "server/grpc/call_gate.h"

namespace longview::server {

// Thread-safe. Borrows the Api and the gate.
class VisionServiceImpl final : public longview::v1::VisionService::CallbackService {
 public:
  VisionServiceImpl(Api& api, const CallGate& gate) : api_(api), gate_(gate) {}

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
  const CallGate& gate_;
};

}  // namespace longview::server
