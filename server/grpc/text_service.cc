#include "server/grpc/text_service.h"

#include <utility>

#include "server/grpc/answer_call.h"
#include "server/grpc/call_context.h"
#include "server/grpc/open_document.h"
#include "server/grpc/unary_call.h"

namespace longview::server {
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
  return AnswerCall<longview::v1::GenerateResponse>::Run([&](auto on_ready) {
    return api_.Generate(ReadCallInfo(*context, "Generate"), *request, std::move(on_ready));
  });
}

grpc::ServerReadReactor<longview::v1::OpenDocumentRequest>* TextServiceImpl::OpenDocument(
    grpc::CallbackServerContext* context, longview::v1::Document* response) {
  return OpenDocumentCall::Start(api_, ReadCallInfo(*context, "OpenDocument"), response);
}

grpc::ServerUnaryReactor* TextServiceImpl::CloseDocument(
    grpc::CallbackServerContext* context, const longview::v1::CloseDocumentRequest* request,
    longview::v1::Document* response) {
  return AnswerNow(*context, response,
                   api_.CloseDocument(ReadCallInfo(*context, "CloseDocument"), *request));
}

}  // namespace longview::server
