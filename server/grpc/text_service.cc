#include "server/grpc/text_service.h"

#include <utility>

#include "server/grpc/answer_call.h"
#include "server/grpc/open_document.h"
#include "server/grpc/unary_call.h"

namespace longview::server {
grpc::ServerUnaryReactor* TextServiceImpl::Classify(grpc::CallbackServerContext* context,
                                                    const longview::v1::ClassifyRequest* request,
                                                    longview::v1::ClassifyResponse* response) {
  return UnaryCall<longview::v1::ClassifyResponse>::Run(
      gate_, *context, "Classify", response, [&](const CallInfo& info, auto reply) {
        return api_.Classify(info, *request, std::move(reply));
      });
}

grpc::ServerUnaryReactor* TextServiceImpl::ClassifyTokens(
    grpc::CallbackServerContext* context, const longview::v1::ClassifyTokensRequest* request,
    longview::v1::ClassifyTokensResponse* response) {
  return UnaryCall<longview::v1::ClassifyTokensResponse>::Run(
      gate_, *context, "ClassifyTokens", response, [&](const CallInfo& info, auto reply) {
        return api_.ClassifyTokens(info, *request, std::move(reply));
      });
}

grpc::ServerUnaryReactor* TextServiceImpl::AnswerQuestion(
    grpc::CallbackServerContext* context, const longview::v1::AnswerQuestionRequest* request,
    longview::v1::AnswerQuestionResponse* response) {
  return UnaryCall<longview::v1::AnswerQuestionResponse>::Run(
      gate_, *context, "AnswerQuestion", response, [&](const CallInfo& info, auto reply) {
        return api_.AnswerQuestion(info, *request, std::move(reply));
      });
}

grpc::ServerUnaryReactor* TextServiceImpl::FillMask(grpc::CallbackServerContext* context,
                                                    const longview::v1::FillMaskRequest* request,
                                                    longview::v1::FillMaskResponse* response) {
  return UnaryCall<longview::v1::FillMaskResponse>::Run(
      gate_, *context, "FillMask", response, [&](const CallInfo& info, auto reply) {
        return api_.FillMask(info, *request, std::move(reply));
      });
}

grpc::ServerUnaryReactor* TextServiceImpl::Embed(grpc::CallbackServerContext* context,
                                                 const longview::v1::EmbedRequest* request,
                                                 longview::v1::EmbedResponse* response) {
  return UnaryCall<longview::v1::EmbedResponse>::Run(
      gate_, *context, "Embed", response, [&](const CallInfo& info, auto reply) {
        return api_.Embed(info, *request, std::move(reply));
      });
}

grpc::ServerWriteReactor<longview::v1::GenerateResponse>* TextServiceImpl::Generate(
    grpc::CallbackServerContext* context, const longview::v1::GenerateRequest* request) {
  return AnswerCall<longview::v1::GenerateResponse>::Run(
      gate_, *context, "Generate", [&](const CallInfo& info, auto on_ready) {
        return api_.Generate(info, *request, std::move(on_ready));
      });
}

grpc::ServerReadReactor<longview::v1::OpenDocumentRequest>* TextServiceImpl::OpenDocument(
    grpc::CallbackServerContext* context, longview::v1::Document* response) {
  return OpenDocumentCall::Start(api_, gate_, *context, response);
}

grpc::ServerUnaryReactor* TextServiceImpl::CloseDocument(
    grpc::CallbackServerContext* context, const longview::v1::CloseDocumentRequest* request,
    longview::v1::Document* response) {
  return AnswerNow(gate_, *context, "CloseDocument", response,
                   [&](const CallInfo& info) { return api_.CloseDocument(info, *request); });
}

}  // namespace longview::server
