#include "longview/v1/vision.pb.h"
#include "server/grpc/services.h"

namespace longview::server {

void AddVisionMethods(Api& api, ByteService& service) {
  service.AddUnary("ClassifyImage", api, &Api::ClassifyImage);
  service.AddUnary("DetectObjects", api, &Api::DetectObjects);
  service.AddUnary("ExtractFeatures", api, &Api::ExtractFeatures);
}

}  // namespace longview::server
