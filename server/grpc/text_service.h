// longview.v1.TextService over the Api.
#pragma once

#include "longview/v1/text.grpc.pb.h"
#include "server/api/api.h"
#include "server/grpc/call_gate.h"

namespace longview::server {

// Thread-safe; handlers only hand over and return. Borrows the Api and the gate.
class TextServiceImpl final : public longview::v1::TextService::CallbackService {
 public:
  TextServiceImpl(Api& api, const CallGate& gate) : api_(api), gate_(gate) {}

  grpc::ServerUnaryReactor* Classify(grpc::CallbackServerContext* context,
                                     const longview::v1::ClassifyRequest* request,
                                     longview::v1::ClassifyResponse* response) override;
  grpc::ServerUnaryReactor* ClassifyTokens(grpc::CallbackServerContext* context,
                                           const longview::v1::ClassifyTokensRequest* request,
                                           longview::v1::ClassifyTokensResponse* response) override;
  grpc::ServerUnaryReactor* AnswerQuestion(grpc::CallbackServerContext* context,
                                           const longview::v1::AnswerQuestionRequest* request,
                                           longview::v1::AnswerQuestionResponse* response) override;
  grpc::ServerUnaryReactor* FillMask(grpc::CallbackServerContext* context,
                                     const longview::v1::FillMaskRequest* request,
                                     longview::v1::FillMaskResponse* response) override;
  grpc::ServerUnaryReactor* Embed(grpc::CallbackServerContext* context,
                                  const longview::v1::EmbedRequest* request,
                                  longview::v1::EmbedResponse* response) override;

  grpc::ServerWriteReactor<longview::v1::GenerateResponse>* Generate(
      grpc::CallbackServerContext* context, const longview::v1::GenerateRequest* request) override;
  grpc::ServerReadReactor<longview::v1::OpenDocumentRequest>* OpenDocument(
      grpc::CallbackServerContext* context, longview::v1::Document* response) override;
  grpc::ServerUnaryReactor* CloseDocument(grpc::CallbackServerContext* context,
                                          const longview::v1::CloseDocumentRequest* request,
                                          longview::v1::Document* response) override;

 private:
  Api& api_;
  const CallGate& gate_;
};

}  // namespace longview::server
