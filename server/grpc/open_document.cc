#include "server/grpc/open_document.h"

#include <utility>

#include "server/status_map_grpc.h"

namespace longview::server {

OpenDocumentCall::OpenDocumentCall(Api& api, const CallTools& tools,
                                   grpc::CallbackServerContext& context)
    : ByteCall(tools, context, "OpenDocument", Access::kKey), api_(api) {}

void OpenDocumentCall::Begin() {
  upload_ = api_.OpenDocument(info());
  Read(Pace::kInTime);
}

void OpenDocumentCall::OnMessage(grpc::ByteBuffer& bytes) {
  longview::v1::OpenDocumentRequest part;
  if (const grpc::Status read = Decode(bytes, part, held()); !read.ok()) {
    upload_->Cancel();
    return Finish(read);
  }
  upload_->Append(std::move(part), [this](const absl::Status& read) {
    if (!read.ok()) return Finish(ToGrpcStatus(read));
    Read(Pace::kAnyTime);
  });
}

void OpenDocumentCall::OnNoMessage() {
  const absl::StatusOr<longview::v1::Document> document = upload_->Finish();
  if (!document.ok()) return Finish(ToGrpcStatus(document.status()));
  WriteAndFinish(*document);
}

void OpenDocumentCall::OnCancel() {
  if (upload_ != nullptr) upload_->Cancel();
}

}  // namespace longview::server
