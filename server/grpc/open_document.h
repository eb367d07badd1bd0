// OpenDocument: a client stream whose parts are read as they arrive. The next part is asked for
// when the model has read the last one, which holds the client back through flow control.
#pragma once

#include <memory>

#include "longview/v1/text.grpc.pb.h"
#include "server/api/api.h"
#include "server/api/document_upload.h"
#include "server/grpc/call_gate.h"

namespace longview::server {

// Owns itself from Start to OnDone.
class OpenDocumentCall final : public grpc::ServerReadReactor<longview::v1::OpenDocumentRequest> {
 public:
  using Reactor = grpc::ServerReadReactor<longview::v1::OpenDocumentRequest>;

  // `response` is the library's.
  static Reactor* Start(Api& api, const CallGate& gate, grpc::CallbackServerContext& context,
                        longview::v1::Document* response);

  void OnReadDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  OpenDocumentCall(Api& api, const CallInfo& info, longview::v1::Document* response);

  std::shared_ptr<DocumentUpload> upload_;
  longview::v1::Document* const response_;
  longview::v1::OpenDocumentRequest part_;  // Belongs to the read that is under way.
};

}  // namespace longview::server
