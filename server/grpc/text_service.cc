#include "server/grpc/text_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors.h"
#include "server/grpc/call_context.h"
#include "server/grpc/unary_call.h"

namespace longview::server {
namespace {

using models::Task;

// A stream of answers that ends with an error at once.
class RefusedStream : public grpc::ServerWriteReactor<longview::v1::GenerateResponse> {
 public:
  explicit RefusedStream(const absl::Status& status) { Finish(ToGrpcStatus(status)); }
  void OnDone() override { delete this; }
};

// Reads the first message, which names the model, and refuses.
class RefusedDocument : public grpc::ServerReadReactor<longview::v1::OpenDocumentRequest> {
 public:
  RefusedDocument(Api& api, CallInfo info) : api_(api), info_(std::move(info)) {
    StartRead(&first_);
  }

  void OnReadDone(bool ok) override {
    const absl::Status status =
        ok ? api_.RefuseTask(info_, first_.model(), first_.version(), Task::kTextGeneration)
           : absl::InvalidArgumentError("OpenDocument: the stream has no message");
    Finish(ToGrpcStatus(status));
  }
  void OnDone() override { delete this; }

 private:
  Api& api_;
  const CallInfo info_;
  longview::v1::OpenDocumentRequest first_;
};

}  // namespace

grpc::ServerUnaryReactor* TextServiceImpl::Classify(grpc::CallbackServerContext* context,
                                                    const longview::v1::ClassifyRequest* request,
                                                    longview::v1::ClassifyResponse* response) {
  return UnaryCall<longview::v1::ClassifyResponse>::Run(response, [&](auto reply) {
    return api_.Classify(ReadCallInfo(*context, "Classify"), *request, std::move(reply));
  });
}

grpc::ServerUnaryReactor* TextServiceImpl::ClassifyTokens(
    grpc::CallbackServerContext* context, const longview::v1::ClassifyTokensRequest* request,
    longview::v1::ClassifyTokensResponse* response) {
  return UnaryCall<longview::v1::ClassifyTokensResponse>::Run(response, [&](auto reply) {
    return api_.ClassifyTokens(ReadCallInfo(*context, "ClassifyTokens"), *request,
                               std::move(reply));
  });
}

grpc::ServerUnaryReactor* TextServiceImpl::AnswerQuestion(
    grpc::CallbackServerContext* context, const longview::v1::AnswerQuestionRequest* request,
    longview::v1::AnswerQuestionResponse* response) {
  return UnaryCall<longview::v1::AnswerQuestionResponse>::Run(response, [&](auto reply) {
    return api_.AnswerQuestion(ReadCallInfo(*context, "AnswerQuestion"), *request,
                               std::move(reply));
  });
}

grpc::ServerUnaryReactor* TextServiceImpl::FillMask(grpc::CallbackServerContext* context,
                                                    const longview::v1::FillMaskRequest* request,
                                                    longview::v1::FillMaskResponse* response) {
  return UnaryCall<longview::v1::FillMaskResponse>::Run(response, [&](auto reply) {
    return api_.FillMask(ReadCallInfo(*context, "FillMask"), *request, std::move(reply));
  });
}

grpc::ServerUnaryReactor* TextServiceImpl::Embed(grpc::CallbackServerContext* context,
                                                 const longview::v1::EmbedRequest* request,
                                                 longview::v1::EmbedResponse* response) {
  return UnaryCall<longview::v1::EmbedResponse>::Run(response, [&](auto reply) {
    return api_.Embed(ReadCallInfo(*context, "Embed"), *request, std::move(reply));
  });
}

grpc::ServerWriteReactor<longview::v1::GenerateResponse>* TextServiceImpl::Generate(
    grpc::CallbackServerContext* context, const longview::v1::GenerateRequest* request) {
  return new RefusedStream(api_.RefuseTask(ReadCallInfo(*context, "Generate"), request->model(),
                                           request->version(), Task::kTextGeneration));
}

grpc::ServerReadReactor<longview::v1::OpenDocumentRequest>* TextServiceImpl::OpenDocument(
    grpc::CallbackServerContext* context, longview::v1::Document*) {
  return new RefusedDocument(api_, ReadCallInfo(*context, "OpenDocument"));
}

grpc::ServerUnaryReactor* TextServiceImpl::CloseDocument(
    grpc::CallbackServerContext* context, const longview::v1::CloseDocumentRequest* request,
    longview::v1::Document* response) {
  const absl::Status status =
      MakeError(absl::StatusCode::kNotFound,
                absl::StrCat("handle: ", Quoted(request->handle()), " is no open document"),
                {.reason = "DOCUMENT_NOT_FOUND", .param = "handle"});
  return AnswerNow<longview::v1::Document>(
      *context, response, api_.Record(ReadCallInfo(*context, "CloseDocument"), "", "", status));
}

}  // namespace longview::server
