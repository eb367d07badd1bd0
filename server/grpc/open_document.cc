#include "server/grpc/open_document.h"

#include <utility>

#include "server/status_map_grpc.h"

namespace longview::server {

OpenDocumentCall::Reactor* OpenDocumentCall::Start(Api& api, const CallGate& gate,
                                                   grpc::CallbackServerContext& context,
                                                   longview::v1::Document* response) {
  const absl::StatusOr<CallInfo> info = gate.Admit(context, "OpenDocument");
  if (!info.ok()) return new RefusedCall<Reactor>(ToGrpcStatus(info.status()));
  return new OpenDocumentCall(api, *info, response);
}

OpenDocumentCall::OpenDocumentCall(Api& api, const CallInfo& info, longview::v1::Document* response)
    : upload_(api.OpenDocument(info)), response_(response) {
  StartRead(&part_);
}

void OpenDocumentCall::OnReadDone(bool ok) {
  if (!ok) {
    absl::StatusOr<longview::v1::Document> document = upload_->Finish();
    if (document.ok()) *response_ = *std::move(document);
    Finish(ToGrpcStatus(document.status()));
    return;
  }
  upload_->Append(std::move(part_), [this](const absl::Status& read) {
    if (!read.ok()) return Finish(ToGrpcStatus(read));
    part_.Clear();
    StartRead(&part_);
  });
}

void OpenDocumentCall::OnCancel() { upload_->Cancel(); }

void OpenDocumentCall::OnDone() { delete this; }

}  // namespace longview::server
