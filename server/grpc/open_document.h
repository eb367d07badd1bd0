// OpenDocument: a client stream whose parts are read as they arrive. The next part is asked for
// when the model has read the last one, which holds the client back through flow control.
#pragma once

#include <memory>

#include "longview/v1/text.pb.h"
#include "server/api/api.h"
#include "server/api/document_upload.h"
#include "server/grpc/byte_call.h"

namespace longview::server {

class OpenDocumentCall final : public ByteCall {
 public:
  OpenDocumentCall(Api& api, const CallTools& tools, grpc::CallbackServerContext& context);

  void OnCancel() override;

 private:
  void Begin() override;
  void OnMessage(grpc::ByteBuffer& bytes) override;
  void OnNoMessage() override;

  Api& api_;
  std::shared_ptr<DocumentUpload> upload_;  // Null: the call was not let in.
};

}  // namespace longview::server
