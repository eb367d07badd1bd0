// The typed calls of longview.v1 over HTTP.
#include <string>
#include <utility>

#include "server/http/context.h"
#include "server/http/json/message.h"
#include "server/http/v1/typed_body.h"

namespace longview::server {
namespace {

template <typename Request, typename Response>
using ApiCall = Api::Pending (Api::*)(const CallInfo&, const Request&, Reply<Response>);

template <typename Response>
HttpResponse TypedResponse(const Response& response) {
  HttpResponse http;
  AppendMessage(response, &http.body);
  if constexpr (requires { response.timing(); }) {
    AddServerTiming(response.timing().queue_seconds(), response.timing().compute_seconds(), &http);
  }
  return http;
}

template <typename Request, typename Response>
void Run(HttpContext& context, const ExchangePtr& exchange, TypedBody& body,
         ApiCall<Request, Response> call) {
  Request request;
  if (absl::Status status = body.MoveTo(&request); !status.ok()) {
    return Refuse(context, exchange, status);
  }
  const Api::Pending pending = (context.api.*call)(
      exchange->info(), request, [&context, exchange](absl::StatusOr<Response> response) {
        if (!response.ok()) return exchange->Fail(response.status());
        const size_t bytes = kJsonGrowth * response->ByteSizeLong();
        WriteSized(context, exchange, bytes, [&context, exchange, response = *std::move(response)] {
          HttpResponse http = TypedResponse(response);
          if (absl::Status status = CheckAnswerSize(context, http.body); !status.ok()) {
            return exchange->Fail(status);
          }
          exchange->Respond(std::move(http));
        });
      });
  exchange->OnCancel([pending] { Api::Cancel(pending); });
}

// A route whose body is parsed first.
template <typename Handle>
void AddBodyRoute(HttpContext& context, Router& router, std::string_view path, Handle handle) {
  router.Add(
      Verb::kPost, path, [&context, handle](const ExchangePtr& exchange, const PathParameters&) {
        absl::StatusOr<TypedBody> body =
            TypedBody::Parse(exchange->mutable_request(), context.api.options().max_message_bytes);
        if (!body.ok()) return Refuse(context, exchange, body.status());
        handle(exchange, *body);
      });
}

template <typename Request, typename Response>
void AddCall(HttpContext& context, Router& router, std::string_view path,
             ApiCall<Request, Response> call) {
  AddBodyRoute(context, router, path,
               [&context, call](const ExchangePtr& exchange, TypedBody& body) {
                 Run(context, exchange, body, call);
               });
}

}  // namespace

void AddTyped(HttpContext& context, Router& router) {
  AddBodyRoute(context, router, "/v1/classify",
               [&context](const ExchangePtr& exchange, TypedBody& body) {
                 if (body.Has("image")) {
                   return Run(context, exchange, body, &Api::ClassifyImage);
                 }
                 Run(context, exchange, body, &Api::Classify);
               });
  AddCall(context, router, "/v1/classify-tokens", &Api::ClassifyTokens);
  AddCall(context, router, "/v1/answer", &Api::AnswerQuestion);
  AddCall(context, router, "/v1/fill-mask", &Api::FillMask);
  AddCall(context, router, "/v1/estimate", &Api::Estimate);
  AddCall(context, router, "/v1/detect", &Api::DetectObjects);
  AddCall(context, router, "/v1/features", &Api::ExtractFeatures);
}

}  // namespace longview::server
