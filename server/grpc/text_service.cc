#include <utility>

#include "longview/v1/text.pb.h"
#include "server/grpc/open_document.h"
#include "server/grpc/services.h"

namespace longview::server {

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
