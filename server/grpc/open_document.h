// OpenDocument: a client stream whose parts are read as they arrive. The next part is asked for
// when the model has read the last one, which holds the client back through flow control.
#pragma once

#include <memory>
#include <mutex>

#include "longview/v1/text.pb.h"
#include "server/api/api.h"
#include "server/api/document_upload.h"
#include "server/grpc/byte_call.h"

namespace longview::server {

class OpenDocumentCall final : public ByteCall {
 public:
  OpenDocumentCall(Api& api, const CallTools& tools, grpc::CallbackServerContext& context);

  void OnCancel() override;
  void EndNow(const grpc::Status& status) override;

 private:
  void Begin() override;
  void OnMessage(grpc::ByteBuffer& bytes) override;
  void OnNoMessage() override;

  // Ends the call, but once.
  void End(const grpc::Status& status);
  // Reads on unless the call was ended.
  void ReadOn();

  Api& api_;
  std::shared_ptr<DocumentUpload> upload_;  // Set once, under mutex_. Null: not let in.
  std::mutex mutex_;                        // Guards all below.
  bool ended_ = false;
};

}  // namespace longview::server
