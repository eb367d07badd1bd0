#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "longview/v1/text.pb.h"
#include "server/api/api.h"
#include "server/api/typed/document_upload.h"
#include "server/grpc/byte_call.h"
#include "server/grpc/services.h"
#include "server/status_map_grpc.h"

namespace longview::server {
namespace {

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
  std::shared_ptr<DocumentUpload> upload() {
    absl::MutexLock lock(&mutex_);
    return upload_;
  }

  Api& api_;
  absl::Mutex mutex_;
  std::shared_ptr<DocumentUpload> upload_ ABSL_GUARDED_BY(mutex_);  // Set once. Null: not let in.
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

OpenDocumentCall::OpenDocumentCall(Api& api, const CallTools& tools,
                                   grpc::CallbackServerContext& context)
    : ByteCall(tools, context, "OpenDocument", Access::kKey), api_(api) {}

void OpenDocumentCall::Begin() {
  absl::MutexLock lock(&mutex_);
  upload_ = api_.OpenDocument(info());
  if (!ended_) Read(Pace::kInTime);
}

void OpenDocumentCall::OnMessage(grpc::ByteBuffer& bytes) {
  const std::shared_ptr<DocumentUpload> upload = this->upload();
  longview::v1::OpenDocumentRequest part;
  if (const grpc::Status read = Decode(bytes, part, held()); !read.ok()) {
    upload->Cancel();
    return End(read);
  }
  // The part may be read for long after the end of the call.
  upload->Append(std::move(part), [this, keeper = Keeper(this)](const absl::Status& read) mutable {
    const Keeper last = std::move(keeper);
    if (read.ok()) {
      ReadOn();
    } else {
      End(ToGrpcStatus(read));
    }
  });
}

void OpenDocumentCall::OnNoMessage() {
  std::shared_ptr<DocumentUpload> upload;
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(ended_, true)) return;
    upload = upload_;
  }
  const absl::StatusOr<longview::v1::Document> document = upload->Finish();
  if (!document.ok()) return Finish(ToGrpcStatus(document.status()));
  WriteAndFinish(*document);
}

void OpenDocumentCall::ReadOn() {
  absl::MutexLock lock(&mutex_);
  if (!ended_) Read(Pace::kAnyTime);
}

void OpenDocumentCall::End(const grpc::Status& status) {
  absl::MutexLock lock(&mutex_);
  if (!std::exchange(ended_, true)) Finish(status);
}

void OpenDocumentCall::EndNow(const grpc::Status& status) {
  End(status);
  OnCancel();
}

void OpenDocumentCall::OnCancel() {
  if (const std::shared_ptr<DocumentUpload> begun = upload()) begun->Cancel();
}

}  // namespace

namespace v1 = longview::v1;

void AddTextMethods(Api& api, ByteService& service) {
  service.AddUnary("Classify", api, &Api::Classify);
  service.AddUnary("ClassifyTokens", api, &Api::ClassifyTokens);
  service.AddUnary("AnswerQuestion", api, &Api::AnswerQuestion);
  service.AddUnary("FillMask", api, &Api::FillMask);
  service.AddUnary("Embed", api, &Api::Embed);
  service.AddUnary("Rerank", api, &Api::Rerank);
  service.AddAnswers<v1::GenerateRequest, v1::GenerateResponse>(
      "Generate", [&api](const CallInfo& info, const v1::GenerateRequest& request, auto on_ready) {
        return api.Generate(info, request, std::move(on_ready));
      });
  service.Add("OpenDocument", [&api, &service](grpc::CallbackServerContext& context) -> ByteCall* {
    return new OpenDocumentCall(api, service.tools(), context);
  });
  service.AddImmediate<v1::CloseDocumentRequest, v1::Document>(
      "CloseDocument", [&api](const CallInfo& info, const v1::CloseDocumentRequest& request) {
        return api.CloseDocument(info, request);
      });
}

}  // namespace longview::server
