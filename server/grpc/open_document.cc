#include "server/grpc/open_document.h"

#include <utility>

#include "server/status_map_grpc.h"

namespace longview::server {

OpenDocumentCall::OpenDocumentCall(Api& api, const CallTools& tools,
                                   grpc::CallbackServerContext& context)
    : ByteCall(tools, context, "OpenDocument", Access::kKey), api_(api) {}

void OpenDocumentCall::Begin() {
  std::lock_guard lock(mutex_);
  upload_ = api_.OpenDocument(info());
  if (!ended_) Read(Pace::kInTime);
}

void OpenDocumentCall::OnMessage(grpc::ByteBuffer& bytes) {
  longview::v1::OpenDocumentRequest part;
  if (const grpc::Status read = Decode(bytes, part, held()); !read.ok()) {
    upload_->Cancel();
    return End(read);
  }
  // The part may be read for long after the end of the call.
  upload_->Append(std::move(part), [this, keeper = Keeper(this)](const absl::Status& read) mutable {
    const Keeper last = std::move(keeper);
    if (read.ok()) {
      ReadOn();
    } else {
      End(ToGrpcStatus(read));
    }
  });
}

void OpenDocumentCall::OnNoMessage() {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(ended_, true)) return;
  }
  const absl::StatusOr<longview::v1::Document> document = upload_->Finish();
  if (!document.ok()) return Finish(ToGrpcStatus(document.status()));
  WriteAndFinish(*document);
}

void OpenDocumentCall::ReadOn() {
  std::lock_guard lock(mutex_);
  if (!ended_) Read(Pace::kAnyTime);
}

void OpenDocumentCall::End(const grpc::Status& status) {
  std::lock_guard lock(mutex_);
  if (!std::exchange(ended_, true)) Finish(status);
}

void OpenDocumentCall::EndNow(const grpc::Status& status) {
  End(status);
  OnCancel();
}

void OpenDocumentCall::OnCancel() {
  std::shared_ptr<DocumentUpload> upload;
  {
    std::lock_guard lock(mutex_);
    upload = upload_;
  }
  if (upload != nullptr) upload->Cancel();
}

}  // namespace longview::server
